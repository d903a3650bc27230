"""Frozen transformers as embedders, and heads on them."""

import elmo_tasks.modules  # noqa: F401 - until the embedder finds its layers by name
