"""Frozen transformers as embedders, and heads on them."""
