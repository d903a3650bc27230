"""Exports of annotation tools, in and out."""
