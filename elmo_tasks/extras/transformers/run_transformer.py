"""The transformer of a run."""

from __future__ import annotations

from collections.abc import Mapping

from elmo_tasks.elmo.bilm_files import FrozenFiles
from elmo_tasks.extras.transformers.transformer_files import TransformerFiles
from elmo_tasks.files.downloads import HUB
from elmo_tasks.runs.frozen_models import FrozenModel


class RunTransformer(FrozenModel):
    """The transformer of a run."""

    title = "transformer"
    part = "transformer"
    locations = (("model",),)
    files_type = TransformerFiles
    lasting = f"{HUB}.*"

    @staticmethod
    def find(location: Mapping[str, str]) -> TransformerFiles:
        return TransformerFiles.of(location["model"], local_only=True)

    @staticmethod
    def load(files: FrozenFiles) -> object:
        return TransformerFiles(files.shown_path).load()
