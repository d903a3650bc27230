"""What goes beyond the paper's models and tasks: plain taggers and classifiers, plain BiDAF, CoNLL-U."""
