"""Which tokens count for a result."""
