"""Copies of training sentences as people type them."""
