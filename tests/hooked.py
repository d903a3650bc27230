"""Another object at a place of `elmo_tasks.hooks`, for a while."""

import contextlib
from collections.abc import Iterator
from typing import Any

from elmo_tasks import hooks


@contextlib.contextmanager
def hooked(place: str, name: str, value: Any) -> Iterator[None]:
    """Within the block, the core finds a value under a name."""
    earlier = hooks.find(place, name)
    hooks.register(place, name, value)
    try:
        yield
    finally:
        hooks.register(place, name, earlier)
