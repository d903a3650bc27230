"""Training: batches, optimizers, schedules, averaging, checkpoints and the one Trainer that all heads share."""
