"""Training: the one loop for heads and biLMs; batches, optimizers, schedules, averages, callbacks and evaluation."""
