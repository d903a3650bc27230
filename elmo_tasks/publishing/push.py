"""Writes runs and biLMs to the hub."""

from __future__ import annotations

from pathlib import Path

from elmo_tasks.config import load_config
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles, bilm_folder
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import RunError
from elmo_tasks.files.hub import upload
from elmo_tasks.files.installed_models import About
from elmo_tasks.files.json_files import read_json
from elmo_tasks.pretraining.language_model import LanguageModel
from elmo_tasks.pretraining.pretrain import Results as PretrainingResults
from elmo_tasks.pretraining.run_files import PretrainingFolder
from elmo_tasks.publishing.card import bilm_card, run_card
from elmo_tasks.runs.archive import open_run, trained_files
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results
from elmo_tasks.runs.folder import RunFolder


def push(model: str | Path, target: str, *, private: bool = False) -> str:
    """Writes a trained run, with its biLM and its transformer, or a biLM to the hub, in one commit.

    The model card says what its authors should fill in. A card that is already there is kept.

    Arguments:
        model: the folder or the archive of a run, or the folder of a biLM.
        target: `hub:ORG/NAME`; the model is made if it is missing.
        private: makes a new model one that only its owners can see.

    Returns:
        the address of the model's page.

    Raises:
        RunError: the run has not finished, or its biLM or transformer has moved or changed.
        WeightsError: a file of the biLM is missing.
        RemoteError: nobody is logged in who may write there, or the hub cannot be reached.
    """
    return upload(target, *files_and_card(model, target), private=private)


def files_and_card(model: str | Path, target: str) -> tuple[dict[str, Path], str]:
    """The files that `push` writes, by their names there, and the model card."""
    if str(model) == DEFAULT_BILM or (Path(model).is_dir() and not RunFolder(model).vocabulary.is_file()):
        return _bilm(model, target)
    run = open_run(model)
    files = trained_files(run, with_bilm=True)
    if not run.metrics.is_file():
        raise RunError(f"{model}: no {run.metrics.name}; expected a run that has finished")
    config = load_config(run.config, ExperimentConfig)
    results = read_json(run.metrics, Results, "the metrics of a run")
    bilm = BiLMOptions.load(run.bilm.files().paths["options.json"]) if config.elmo() else None
    return files, run_card(target, config, results, bilm, About.of(run.path))


def _bilm(model: str | Path, target: str) -> tuple[dict[str, Path], str]:
    found, folder = BiLMFiles.in_folder(model), PretrainingFolder(bilm_folder(model))
    files = dict(found.paths)
    if LanguageModel.is_in_folder(model):
        files |= {path.name: path for path in (folder.vocabulary, folder.softmax)}
    results = None
    if folder.results.is_file():
        results = read_json(folder.results, PretrainingResults, "the results of a pretraining")
        files |= {path.name: path for path in (folder.results, folder.config)}  # the config names the tokenizer
    return files, bilm_card(target, BiLMOptions.load(found.options), results)
