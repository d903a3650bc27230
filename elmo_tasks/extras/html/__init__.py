"""Results as pages for browsers and notebooks."""
