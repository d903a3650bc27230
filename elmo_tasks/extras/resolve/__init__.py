"""Texts with each mention replaced by the name that it stands for."""
