"""Whether the files that a study needs are there, and whole: what is counted in them, next to the published counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.data_readers.sources import HUB_PREFIX, Parsing, Source, path_list, single_sources
from elmo_tasks.data_readers.srl import SrlReader
from elmo_tasks.errors import ElmoTasksError, WeightsError, some_of
from elmo_tasks.extras.studies.study import Study
from elmo_tasks.files.paths import plain_name, stored_file
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.tasks import Coreference, Reading, Tagging, TextPairs
from elmo_tasks.text.tag_schemes import spans_of_tags

Counts = Mapping[str, int]
FAULTS = CUT, UNREADABLE, MISSING = "cut", "cannot be read", "missing"

# By the end of the path, see docs/data_sets.md. Tjong Kim Sang and De Meulder (2003), tables 1, without the 1,393 lines
# between articles, and 2; Socher et al. (2013); Bowman et al. (2015), pairs with a gold label; Rajpurkar et al. (2016);
# Pradhan et al. (2012), parts of documents.
PUBLISHED: Mapping[str, Counts] = {
    "ner_conll2003/eng.train": {"sentences": 14_041, "spans": 23_499},
    "ner_conll2003/eng.testa": {"sentences": 3_250, "spans": 5_942},
    "ner_conll2003/eng.testb": {"sentences": 3_453, "spans": 5_648},
    "sst5/train.txt": {"sentences": 8_544},
    "sst5/dev.txt": {"sentences": 1_101},
    "sst5/test.txt": {"sentences": 2_210},
    "snli/snli_1.0_train.jsonl": {"pairs": 549_367},
    "snli/snli_1.0_dev.jsonl": {"pairs": 9_842},
    "snli/snli_1.0_test.jsonl": {"pairs": 9_824},
    "squad/train-v1.1.json": {"questions": 87_599},
    "squad/dev-v1.1.json": {"questions": 10_570},
    "conll-2012/v4/data/train/data/english": {"documents": 2_802, "sentences": 75_187},
    "conll-2012/v4/data/development/data/english": {"documents": 343, "sentences": 9_603},
    "conll-2012/v4/data/test/data/english": {"documents": 348, "sentences": 9_479},
}


@dataclasses.dataclass(frozen=True)
class FileCheck:
    """A file, or several that are read as one: what it is for, where it is, and what is known of its contents."""

    kind: str
    path: str
    state: str
    found: Counts = dataclasses.field(default_factory=dict)
    published: Counts = dataclasses.field(default_factory=dict)
    problem: str = ""
    arms: list[str] = dataclasses.field(default_factory=list)  # those that need it, with the paper's score

    def row(self) -> list[str]:
        """The cells of a table."""
        counts = [", ".join(f"{each:,} {unit}" for unit, each in some.items()) for some in (self.found, self.published)]
        return [self.path, self.kind, self.state, *counts, some_of(self.arms, 2)]


def check_files(study: Study) -> list[FileCheck]:
    """Checks what the chosen arms of a study need, each file once. Data sets are read, and cached as for a training."""
    checks: dict[object, FileCheck] = {}
    for arm, config in {run.arm.name: (run.arm, run.config) for run in study.runs if run.chosen}.values():
        name = arm.name if arm.paper is None else f"{arm.name} {arm.paper:g}"
        reader = config.evaluation_reader()  # of whole sentences where the training data is read as phrases
        sources = (config.train_data_path, config.validation_data_path, config.test_data_path)
        for kind, source in zip(("training", "validation", "test"), sources, strict=True):
            if source:
                key = kind, source, reader
                checks[key] = checks.get(key) or _check_data(*key)
                checks[key].arms.append(name)
        for check in _check_vectors(config):
            checks.setdefault(check.path, check).arms.append(name)
    return list(checks.values())


def _check_data(kind: str, source: Source, config: DatasetReaderConfig) -> FileCheck:
    paths = [each if each.startswith(HUB_PREFIX) else str(stored_file(Path(each))) for each in path_list(source) or ()]
    path, reader = ", ".join(paths), config.build()
    plain = path.removesuffix(Path(path).name) + plain_name(Path(path))
    published = next((counts for end, counts in PUBLISHED.items() if plain.endswith(f"/{end}")), {})
    try:
        found = _count(reader, source)
    except MissingDataError:
        return FileCheck(kind, path, MISSING, published=published)
    except ElmoTasksError as error:
        return FileCheck(kind, path, UNREADABLE, published=published, problem=str(error))
    differences = [found[unit] - count for unit, count in published.items() if unit in found]
    state = "complete" if published else "there"
    state = CUT if any(each < 0 for each in differences) else "more than published" if any(differences) else state
    return FileCheck(kind, path, state, found, published)


def _count(reader: DatasetReader, source: Source) -> Counts:
    """The examples of a data set and what they consist of, in the units of publications."""
    data, task = reader.read(source, notes=[]), reader.task
    if isinstance(reader, SrlReader):  # sentences without a predicate make no example
        parsing = Parsing(skip=reader.config.on_error == "skip")
        sentences = sum(1 for each in single_sources(source) for _ in reader.sentences(Path(str(each)), parsing))
        return {"sentences": sentences, "predicates": len(data)}
    if isinstance(task, Coreference):
        mentions = sum(len(cluster) for clusters in data["clusters"] for cluster in clusters)
        return {"documents": len(data), "sentences": sum(map(len, data["sentences"])), "mentions": mentions}
    if isinstance(task, Tagging):
        spans = {"spans": sum(len(spans_of_tags(tags)) for tags in data["tags"])} if task.tag_scheme else {}
        return {"sentences": len(data), **spans}
    labels = {"labels": len(set(data["label"]))} if "label" in data.column_names else {}
    unit = "questions" if isinstance(task, Reading) else "pairs" if isinstance(task, TextPairs) else "sentences"
    return {unit: len(data), **labels}


def _check_vectors(config: ExperimentConfig) -> Iterator[FileCheck]:
    """Of word vectors, the biLM and a transformer."""
    if (words := config.model.embedder.words) and words.vectors:
        path = stored_file(Path(words.vectors))
        yield FileCheck("word vectors", str(path), "there" if path.is_file() else MISSING)
    for kind, frozen in (("biLM", config.elmo()), ("transformer", config.transformer())):
        if frozen:
            where = next(str(path) for path in frozen.model_dump().values() if path is not None)  # the first key
            try:
                frozen.files().fingerprint()
                yield FileCheck(kind, where, "there")
            except WeightsError as error:
                yield FileCheck(kind, where, MISSING, problem=str(error))
