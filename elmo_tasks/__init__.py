"""ELMo for the six task models of Peters et al. (2018), in PyTorch 2."""

__version__ = "0.1.0"
