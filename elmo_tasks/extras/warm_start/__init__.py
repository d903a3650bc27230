"""A model that starts with the weights of another run."""
