"""How bytes get to the disk and back: atomic writes, text, JSON, tensors, archives, locks, limits and the cache."""
