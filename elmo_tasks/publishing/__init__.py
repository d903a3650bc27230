"""Runs and biLMs on the Hugging Face hub: which of their files are written there, and their model cards."""
