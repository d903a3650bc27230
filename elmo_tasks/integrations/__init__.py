"""What joins elmo-tasks to other software: Arrow tables for any engine, scikit-learn, spaCy, AllenNLP's names."""
