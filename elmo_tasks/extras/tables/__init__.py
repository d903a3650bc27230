"""Spreadsheets and tables as people have them, in and out."""
