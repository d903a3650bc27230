"""How good trained models are: comparisons with tests of significance, errors and plots."""
