"""Memory of a training: how much it has taken, and keeping what it will want again at the next step."""

from __future__ import annotations

import ctypes
import resource
import sys

import torch

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # `mallopt`'s parameters
_NEVER = (1 << 31) - 1


def keep_freed_memory() -> bool:
    """Lets this process keep the memory of freed tensors for the next ones, where the C library is glibc.

    glibc gives every large piece back to the system at once, so that a step, whose activations and gradients are
    hundreds of megabytes, is handed the same pages again and again, each of them cleared before.

    Returns:
        whether memory is kept.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(
        mallopt(*setting) == 1 for setting in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER))
    )


def peak_memory(device: torch.device) -> int:
    """The most bytes that have been in use: of a GPU's memory by torch, or of the machine's by this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * (1 if sys.platform == "darwin" else 1024)
