"""What biLMs and trained models know."""
