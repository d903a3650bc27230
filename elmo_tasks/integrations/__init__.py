"""What joins elmo-tasks to other software: Arrow tables for any engine, Ray, scikit-learn, spaCy, AllenNLP's names."""
