"""Arrow functions for Ray Data and Spark."""
