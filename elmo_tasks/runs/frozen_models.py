"""The models that a run uses and does not train, its biLM and its transformer: their files, in the run or elsewhere.

bilm.json, transformer.json    where the files are, by the keys of the config, and their fingerprint, as the run began
bilm/, transformer/            the files themselves, where the run is self-contained
"""

from __future__ import annotations

import abc
import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from elmo_tasks.config import Config
from elmo_tasks.elmo import BiLM, ElmoConfig
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, LASTING_NAMES, BiLMFiles, FrozenFiles
from elmo_tasks.elmo.frozen_layers import FrozenLayersConfig
from elmo_tasks.errors import RunError, WeightsError
from elmo_tasks.files.atomic import atomic_folder, atomic_write
from elmo_tasks.files.downloads import HUB, pinned
from elmo_tasks.files.installed_models import package_of
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.models.embedder import EmbedderConfig

logger = logging.getLogger(__name__)


class Reference(Config):
    """The contents of `bilm.json` and `transformer.json`: keys of the config with their values, and the fingerprint."""

    bilm: Annotated[str, Field(pattern=f"^({LASTING_NAMES})$")] | None = None  # other folders have the next two
    options: str | None = None
    weights: str | None = None
    model: str | None = None  # the folder of another network, or hub:NAME@COMMIT
    fingerprint: str

    def location(self) -> dict[str, str]:
        return self.model_dump(exclude={"fingerprint"}, exclude_none=True)


class FrozenModel(abc.ABC):
    """A model that a run refers to, or has a copy of. Extras add kinds of them at the place "frozen_model".

    Arguments:
        run: the folder of the run.
        archive: the archive that it was unpacked from. Such a run uses no files outside of the folder.
        trained: the files of the run that have the model if it is trained with the task.
    """

    title: ClassVar[str]
    part: ClassVar[str]  # its key in an embedder's config
    locations: ClassVar[tuple[tuple[str, ...], ...]]  # the keys below it that locate the files, in each possible way
    files_type: ClassVar[type[FrozenFiles]]
    lasting: ClassVar[str]  # a pattern of names that stay valid when the files move

    def __init__(self, run: Path, archive: Path | None = None, trained: BiLMFiles | None = None) -> None:
        self.run = run
        self.archive = archive
        self.trained = trained
        self.reference = run / f"{self.title.lower()}.json"
        self.copies = run / self.title.lower()

    @staticmethod
    @abc.abstractmethod
    def find(location: Mapping[str, str]) -> FrozenFiles:
        """The files at a location, by the keys of a config. Nothing is downloaded.

        Raises:
            WeightsError: they are not there.
        """

    @staticmethod
    @abc.abstractmethod
    def load(files: FrozenFiles) -> object:
        """Reads the files; raises `WeightsError` if they are not those of a model of this kind."""

    @classmethod
    def located_by(cls) -> list[str]:
        """The keys of a run's config that can locate the files."""
        return [f"model.embedder.{cls.part}.{name}" for names in cls.locations for name in names]

    def is_trained(self) -> bool:
        return self.trained is not None and self.trained.options.is_file()

    def archived_paths(self) -> dict[str, Path]:
        """What an archive can have of the model, by the names in it."""
        files = {f"{self.copies.name}/{name}": self.copies / name for name in self.files_type.names}
        return {self.reference.name: self.reference, **files}

    def read_reference(self) -> Reference:
        """Raises `RunError` if the reference is missing or damaged."""
        reference = read_json(self.reference, Reference, f"the reference to the {self.title} of a run")
        if (found := tuple(reference.location())) not in self.locations:
            expected = " or ".join(" and ".join(map(repr, names)) for names in self.locations)
            raise RunError(f"{self.reference}: expected {expected}, got {' and '.join(map(repr, found)) or 'neither'}")
        return reference

    def refer_to(self, files: FrozenFiles, lasting: Mapping[str, str] | None = None) -> dict[str, str]:
        """Writes the reference, and returns the location of the files.

        Arguments:
            lasting: a location that stays valid when the files move, to be written instead.
        """
        location = {key: str(Path(path).resolve()) for key, path in files.location().items()}
        write_json(self.reference, {**(lasting or location), "fingerprint": files.fingerprint()})
        return location

    def refer_to_config(self, embedder: EmbedderConfig) -> None:
        """Writes the reference to the config's model, if it has one."""
        if config := self.config_in(embedder):
            files = config.files()
            keys = (key.rpartition(".")[2] for key in self.located_by())
            named = {key: value for key in keys if (value := getattr(config, key))}
            lasts = all(re.fullmatch(self.lasting, value) for value in named.values())
            names = {key: pinned(value) if value.startswith(HUB) else value for key, value in named.items()}
            self.refer_to(files, names if lasts else None)

    def files(self) -> FrozenFiles:
        """The files of the run's model: those that are trained, copies in the run, or those that it refers to.

        Raises:
            RunError: the reference is damaged; the model has moved, or is not on this machine; or the run was in an
                archive, and names files outside of it.
        """
        if self.trained and self.is_trained():
            return self.trained
        if self.copies.is_dir():
            return self.find({self.locations[0][0]: str(self.copies)})
        reference = self.read_reference()
        location = reference.location()
        lasts = all(re.fullmatch(self.lasting, name) for name in location.values())
        remedy = self._remedy(location if lasts else None)
        if self.archive and reference.bilm != DEFAULT_BILM:
            raise RunError(
                f"{self.archive}: does not contain its {self.title}, and an archive cannot name files outside of it; "
                f"say where the {self.title} is with {remedy}"
            )
        try:
            files = self.find(location)
        except WeightsError as error:
            raise RunError(f"{self.run}: its {self.title}: {error}; say where with {remedy}") from None
        for path in files.paths.values():
            if not path.is_file():
                problem = f"the run's {self.title} is no longer at {path}"
                raise RunError(f"{self.run}: {problem}; say where with {self._remedy()}")
        if not lasts:
            logger.info("%s: the %s is at %s", self.run, self.title, files.shown_path)
        return files

    def check(self, embedder: EmbedderConfig) -> None:
        """Raises `RunError` if the config has another model than the run has, or began with."""
        if config := self.config_in(embedder):
            reference = self.read_reference()  # before any file that only the config names is looked for
            self._compare(config.files(), reference)

    def _compare(self, files: FrozenFiles, reference: Reference) -> None:
        if files == self.trained:  # its weights are checked as those of the model
            return
        actual, expected = files.fingerprint(), reference.fingerprint
        if actual != expected:
            is_newer = reference.bilm == DEFAULT_BILM and files == self.find(reference.location())
            newer = f"the package has a newer {self.title} than when the run was trained; train again, or "
            if is_newer and (package := package_of(self.run)):
                fitting = f"pip install --upgrade elmo-tasks {package}"
                newer = f"{package} is for another version of elmo-tasks; install versions that fit ({fitting}), or "
            raise RunError(
                f"{files.shown_path}: not the {self.title} that the run was trained with (expected fingerprint "
                f"{expected[:12]}, got {actual[:12]}): {newer if is_newer else ''}name a folder with the run's "
                f"{self.title} by {self._remedy()}"
            )

    def location(self, overrides: Sequence[str]) -> dict[str, str | None]:
        """Where the files are, as values for the config's keys.

        Arguments:
            overrides: of the config; if they locate the files, only the other ways to do so are set to None.

        Raises:
            RunError: the model has moved.
        """
        given = {override.partition("=")[0] for override in overrides}
        prefix = f"model.embedder.{self.part}"
        if not self.reference.is_file() or given & {"model", "model.embedder", prefix}:
            return {}
        nowhere: dict[str, str | None] = dict.fromkeys(self.located_by())
        for names in self.locations:
            chosen = {f"{prefix}.{name}" for name in names}
            if given & chosen:
                return {key: None for key in nowhere if key not in chosen}
        return nowhere | {f"{prefix}.{name}": value for name, value in self.files().location().items()}

    def copy_files(self) -> None:
        """Copies the files into the run's folder, if the run refers to any; raises `RunError` if they have moved."""
        if self.copies.is_dir() or self.is_trained() or not self.reference.is_file():
            return
        with atomic_folder(self.copies) as copies:
            for name, source in self.files().paths.items():
                with open(source, "rb") as content, atomic_write(copies / name) as copy:
                    shutil.copyfileobj(content, copy, 1 << 20)

    def files_to_archive(self) -> dict[str, Path]:
        """The files by their names in an archive; none if the run has no such model, or trains it.

        Raises:
            RunError: they have moved or changed.
            WeightsError: they are not those of a model of this kind.
        """
        if self.is_trained() or not self.reference.is_file():
            return {}
        files = self.files()
        self._compare(files, self.read_reference())
        self.load(files)
        return {f"{self.copies.name}/{name}": path for name, path in files.paths.items()}

    def config_in(self, embedder: EmbedderConfig) -> ElmoConfig | FrozenLayersConfig | None:
        """The part of an embedder's config that names a model of this kind."""
        config: ElmoConfig | FrozenLayersConfig | None = getattr(embedder, self.part)
        return config

    def _remedy(self, location: Mapping[str, str] | None = None) -> str:
        """The options of a command that say where the files are, by default in a folder."""
        chosen = location or {self.locations[0][0]: "DIR"}
        return " ".join(f"--set model.embedder.{self.part}.{key}={name}" for key, name in chosen.items())


class RunBiLM(FrozenModel):
    """The biLM of a run. If it is trained with the task, the run has its options, and the model has its weights."""

    title = "biLM"
    part = "elmo"
    locations = (("bilm",), ("options", "weights"))
    files_type = BiLMFiles
    lasting = LASTING_NAMES

    @staticmethod
    def find(location: Mapping[str, str]) -> FrozenFiles:
        return BiLMFiles.chosen(*map(location.get, ("bilm", "options", "weights")), local_only=True)

    @staticmethod
    def load(files: FrozenFiles) -> object:
        options, weights = files.paths.values()
        return BiLM.load(options, weights)
