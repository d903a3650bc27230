"""One run for each of several seeds, or for each fold of a cross-validation."""
