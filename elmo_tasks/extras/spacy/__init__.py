"""Components of spaCy."""
