"""The topic of a sentence: the task that CONTRIBUTING.md shows how to add."""
