"""How bytes get to the disk and back: atomic writes, text, JSON, tensors, archives, locks, limits and the cache.

`downloads` and `installed_models` say where the name of a model leads to, `signals` how a process ends early.
"""
