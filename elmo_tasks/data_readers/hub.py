"""Data sets of the Hugging Face hub, by the names that configs give them."""

from __future__ import annotations

import datasets

from elmo_tasks.data_readers.sources import HUB_PREFIX
from elmo_tasks.errors import ElmoTasksError


def parse_hub_source(source: str) -> tuple[str, str | None, str | None]:
    """The name, config and split of `hub:NAME[#CONFIG][:SPLIT]`, for example `hub:owner/conll#english:train[:10%]`."""
    name, _, split = source.removeprefix(HUB_PREFIX).partition(":")
    name, _, config = name.partition("#")
    if not name:
        raise ElmoTasksError(f"{source}: not the name of a data set; expected {HUB_PREFIX}NAME[#CONFIG][:SPLIT]")
    return name, config or None, split or None


def load_from_hub(source: str) -> datasets.Dataset:
    """The rows of a hub source; without a split, those of its only one.

    Raises:
        ElmoTasksError: the data set cannot be loaded, or has several splits and none is named.
    """
    name, config, split = parse_hub_source(source)
    try:
        # In memory it would have no files, whose content is the cache's key.
        loaded = datasets.load_dataset(name, config, split=split, keep_in_memory=False)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        # Data sets that need a script raise a RuntimeError: `datasets` does not run scripts any more.
        raise ElmoTasksError(f"{source}: cannot be loaded: {error}") from error
    if isinstance(loaded, datasets.Dataset):
        return loaded
    if len(loaded) != 1:
        raise ElmoTasksError(f"{source}: say which split: {', '.join(f'{source}:{key}' for key in loaded)}")
    return next(iter(loaded.values()))
