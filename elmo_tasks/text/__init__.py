"""Sentences, tokens, tag schemes and vocabularies."""
