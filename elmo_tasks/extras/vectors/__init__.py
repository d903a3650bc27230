"""Vectors of sentences and of files."""
