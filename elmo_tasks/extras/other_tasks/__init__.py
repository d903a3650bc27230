"""What goes beyond the six tasks of the paper: plain taggers and classifiers, and treebanks in CoNLL-U."""
