"""AllenNLP's archives become runs of this project, and its programs use them."""
