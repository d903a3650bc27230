"""What was noticed when a data set was read: kept next to the cached examples, and logged each time they are used."""

from __future__ import annotations

import logging
from pathlib import Path

import datasets
import pydantic

from elmo_tasks.data_readers.several_sources import single_sources
from elmo_tasks.data_readers.sources import Source, source_name
from elmo_tasks.errors import one_line
from elmo_tasks.files.hashes import content_hash
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.paths import stored_file

logger = logging.getLogger(__name__)

_SHOWN_ERRORS = 10  # of what was skipped, in the warning; the record has all


class CacheRecord(pydantic.BaseModel):
    """The record of a cached data set."""

    sha256: str  # of the cached examples
    source: str = ""
    skipped: list[str] = []  # the errors of the parts that do not follow the format
    warnings: list[str] = []  # of what is read but is probably not what it seems

    @classmethod
    def read(cls, cached: Path, source: str | Path) -> CacheRecord:
        """Names this source in the messages: another one with the same content may have been read first."""
        record = cls.model_validate_json(_file(cached).read_text(encoding="utf-8"))
        first = record.source

        def renamed(message: str) -> str:
            return f"{source}{message.removeprefix(first)}" if first and message.startswith(first) else message

        skipped, warnings = (list(map(renamed, messages)) for messages in (record.skipped, record.warnings))
        return cls(sha256=record.sha256, source=str(source), skipped=skipped, warnings=warnings)

    def write(self, cached: Path) -> None:
        write_json(_file(cached), self.model_dump())

    def warn(self, cached: Path) -> None:
        for message in self.warnings:
            logger.warning("%s", message)
        if skipped := self.skipped:
            shown = "".join(f"\n  {error}" for error in skipped[:_SHOWN_ERRORS])
            number = len(skipped) - _SHOWN_ERRORS
            rest = f"\n  and {number} more, see {_file(cached)}" if number > 0 else ""
            problem = f"skipped {len(skipped)} part(s) that do not follow the format"
            logger.warning("%s: %s:%s%s", self.source, problem, shown, rest)


def is_intact(cached: Path) -> bool:
    """Whether the cached examples are there and have the recorded checksum."""
    try:
        if CacheRecord.read(cached, "").sha256 == content_hash(cached):
            return True
        logger.warning("%s: the cached data set is damaged and is built again", cached)
    except FileNotFoundError:
        pass
    except ValueError as error:  # the record is damaged
        logger.warning("%s: the cached data set is damaged and is built again (%s)", cached, one_line(error))
    return False


def records_of(examples: datasets.Dataset, source: Source) -> list[CacheRecord]:
    """The records of a data set that was read from a source: one for each of its files."""
    parts = [stored_file(Path(source_name(part))) for part in single_sources(source)]
    files = zip(examples.cache_files, parts, strict=False)  # the rows of a selection may have a file, too
    return [CacheRecord.read(Path(each["filename"]), part) for each, part in files]


def _file(cached: Path) -> Path:
    return cached.with_suffix(".json")
