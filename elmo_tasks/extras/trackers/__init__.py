"""The curves of trainings."""
