"""One run: training it, its folder, loading and evaluating it, archives, warm starts and repeated runs."""
