"""What goes beyond the paper's models and tasks: plain taggers and classifiers, decomposable attention, CoNLL-U."""
