"""One file per kind of AllenNLP's models; each has a function `convert`, and `KINDS` says which type it is for."""
