"""How good trained models are: comparisons with tests of significance, errors, parts of the data and plots."""
