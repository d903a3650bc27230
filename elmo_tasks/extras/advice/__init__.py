"""What data are like, and warnings of what will hurt a training."""
