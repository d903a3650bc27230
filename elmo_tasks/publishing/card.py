"""Model cards of runs and biLMs for the hub: what is known of them, and places to fill in, such as the licence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from elmo_tasks import __version__
from elmo_tasks.config import to_json
from elmo_tasks.data_readers.sources import HUB_PREFIX, Source, path_list
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.files.installed_models import About
from elmo_tasks.pretraining.pretrain import Results as PretrainingResults
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results
from elmo_tasks.tasks.registry import TaskRegistry

# What the hub calls the tasks; it has no name for coreference.
_HUB_TASKS: TaskRegistry[str] = TaskRegistry(
    tagging="token-classification",
    semantic_roles="token-classification",
    classification="text-classification",
    multi_label="text-classification",
    text_pairs="text-classification",
    regression="text-classification",
    pair_regression="text-classification",
    reading="question-answering",
)
_ESCAPED = str.maketrans({"|": r"\|"})  # in a cell of a table
_FILL_IN = "*Fill in*"
_TO_FILL_IN = f"""
## Licence

{_FILL_IN}: the licence of this model, also as `license` at the top of this file. The data and the biLM that it was
trained on may have licences that restrict it.

## Uses and limits

{_FILL_IN}: what it is for, and what not to expect of it.
"""


def run_card(target: str, config: ExperimentConfig, results: Results, bilm: BiLMOptions | None, about: About) -> str:
    """The model card of a run.

    Arguments:
        target: `hub:ORG/NAME`, or the name of an installed model.
        bilm: the options of the run's biLM, if it has one.
        about: what else is known of it, such as the licence, which otherwise has to be filled in.
    """
    task, head = config.model.task, str(to_json(config.model)["type"])
    paths = (config.train_data_path, config.validation_data_path, config.test_data_path)
    trained_on, validated_on, tested_on = map(_names, paths)
    facts = {
        "task": f"{task.name} ({task.summary})",
        "model": f"`{head}`; all settings are in [config.json](config.json)",
        "biLM": architecture(bilm) if bilm else "none",
        "training data": ", ".join(trained_on),
        "validation data": ", ".join(validated_on) or "none",
        "test data": ", ".join(tested_on) or "none",
    }
    if about.data:
        facts["data sets"] = ", ".join(about.data)
    validation, test = results.best.validation, results.test or {}
    scores = [[name, *(_number(each.get(name)) for each in (validation, test))] for name in {**validation, **test}]
    known: dict[str, Any] = {"pipeline_tag": _HUB_TASKS.find(task)}
    if about.licence:
        known |= {"license": "other", "license_name": about.licence}
    if on_hub := [name for name in trained_on if name.startswith(HUB_PREFIX)]:
        known["datasets"] = [re.split("[:#]", name.removeprefix(HUB_PREFIX))[0] for name in on_hub]
    metric, scored_on = config.trainer.metric_name, " + ".join(tested_on if test else validated_on) or "held-out data"
    if (value := (test or validation).get(metric)) is not None:
        known |= _score(target, known["pipeline_tag"] or "other", scored_on, metric, value)
    use = f"elmo-tasks predict {target} INPUT\nelmo-tasks evaluate {target} DATA"
    table = _table(["metric", "validation", "test"], scores)
    others = f"\nWith and without ELMo: {about.score}.\n" if about.score else ""
    licence = f"\n## Licence\n\n{about.licence}\n" if about.licence else _TO_FILL_IN
    card = _card(target, [task.name, head], known, "A model", use, facts)
    return f"{card}\n## Scores\n\n{table}{others}{licence}"


def bilm_card(target: str, options: BiLMOptions, results: PretrainingResults | None) -> str:
    """The model card of a biLM.

    Arguments:
        target: `hub:ORG/NAME`.
        results: of its pretraining, as far as they are known.
    """
    facts = {"architecture": architecture(options), "text": _FILL_IN}
    if results:
        facts |= {
            "tokens read": f"{results.trained_targets:,}, from a text of {results.training_targets:,}",
            "softmax vocabulary": f"{results.vocabulary:,} words",
            "held-out perplexity": f"{_number(results.held_out['mean'])}, the mean of both directions",
        }
    use = (
        f"elmo-tasks embed sentences.txt --output vectors.hdf5 --bilm {target}\n"
        f"elmo-tasks train CONFIG --set model.embedder.elmo.bilm={target}"
    )
    what = "A bidirectional language model (biLM) for ELMo, in the layout of bilm-tf and AllenNLP"
    return _card(target, ["bilm"], {"pipeline_tag": "feature-extraction"}, what, use, facts) + _TO_FILL_IN


def _card(target: str, tags: Sequence[str], known: dict[str, Any], what: str, use: str, facts: dict[str, str]) -> str:
    """The beginning of a card: what the hub reads, how the model is used, and a table of facts."""
    from huggingface_hub import ModelCardData

    values = ModelCardData(library_name="elmo-tasks", tags=["elmo", *tags], **{"license": "unknown", **known}).to_yaml()
    missing = "language (such as en)" + ("" if "license" in known else " and license (such as apache-2.0)")
    return (
        f"---\n{values}\n# Fill in: {missing}.\n---\n\n"
        f"# {target.rpartition('/')[2]}\n\n{what}, from elmo-tasks {__version__}. To use it:\n\n```\n{use}\n```\n\n"
        f"{_table(['', ''], facts.items())}"
    )


def _score(target: str, task: str, data: str, metric: str, value: float) -> dict[str, Any]:
    """A score in the form that the hub shows."""
    from huggingface_hub import EvalResult

    score = EvalResult(task, dataset_type=data, dataset_name=data, metric_type=metric, metric_value=round(value, 2))
    return {"model_name": target.rpartition("/")[2], "eval_results": [score], "metrics": [metric]}


def architecture(options: BiLMOptions) -> str:
    """What a biLM reads, and its sizes, in words."""
    lstm, read = options.lstm, "words and characters" if options.lexicon else "characters"
    return (
        f"reads {read}; {lstm.n_layers} LSTM layers of {lstm.dim:,} cells in each direction, {options.output_size:,} "
        "features in each layer"
    )


def _names(source: Source | None) -> list[str]:
    """The names of data sets, without the folders of their files."""
    names = (path_list(source) if source else None) or []
    return [name if name.startswith(HUB_PREFIX) else PurePath(name).name for name in names]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (columns, ["---"] * len(columns), *rows)
    return "".join(f"| {' | '.join(cell.translate(_ESCAPED) for cell in cells)} |\n" for cells in lines)
