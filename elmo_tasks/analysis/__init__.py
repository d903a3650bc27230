"""Analysis of biLMs and trained models."""
