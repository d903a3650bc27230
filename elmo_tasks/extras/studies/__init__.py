"""Many runs: studies with their reports, and searches of hyperparameters."""
