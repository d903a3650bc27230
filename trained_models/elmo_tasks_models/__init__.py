"""Trained models of elmo-tasks, as data: each folder is one, and `elmo-tasks models` lists them."""
