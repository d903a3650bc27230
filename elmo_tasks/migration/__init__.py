"""AllenNLP's archives become runs of this project."""
