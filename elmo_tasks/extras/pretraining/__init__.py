"""Pretraining of biLMs: corpora, training of the language model, fine-tuning and perplexity."""
