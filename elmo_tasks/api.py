"""Functions of `import elmo_tasks`; `elmo_tasks/__init__.py` says where the others are."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from elmo_tasks.config import Overrides, include_packages
from elmo_tasks.data_readers.sources import Source
from elmo_tasks.elmo import BiLM, FastBiLM
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.errors import ArgumentError, ElmoTasksError, check_argument, check_choice, check_several
from elmo_tasks.hooks import importing_extra
from elmo_tasks.modules.devices import Device
from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS, Input, Predictor
from elmo_tasks.progress import set_up_logging
from elmo_tasks.rendering import describe
from elmo_tasks.runs.load import RunPaths, load_predictor, with_device
from elmo_tasks.text.tokenizer_config import parse_tokenizer

if TYPE_CHECKING:
    from elmo_tasks.extras.html.html import Page
    from elmo_tasks.extras.probes.neighbors import WordSimilarities

__all__ = ["include_packages", "load", "show", "similarity", "tokenize", "train"]


def train(
    config: str | Path | Mapping[str, Any],
    run_folder: str | Path,
    *,
    train: Source | None = None,
    validation: Source | None = None,
    test: Source | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Trains a model, as `elmo-tasks train` does, and evaluates the best epoch on the test set.

    Unless the script has set up logging, messages go to standard error, as those of the command.

    Arguments:
        config: the name of a config in the package, the path of a Jsonnet or JSON file, or its values as a dict.
        run_folder: where the run is written.
        train: the data set to learn from: a file, a hub data set (`hub:NAME`), several of them, or examples with the
            columns of the config's task, as a list of dicts or a `datasets.Dataset`. By default, the config's.
        validation: the same, to choose the best epoch. With `train` and without `validation`, there is none: the last
            epoch is kept. The override `validation_share` holds out a part of `train`.
        test: the same, evaluated once, after training. With `train` and without `test`, there is no test set.
        settings: any of these keyword arguments:
            overrides: changes of the config, `{"key.path": value}` or `["key.path=value"]`.
            variables: external variables of the Jsonnet file, as a dict.
            from_run: the folder or archive of a run, whose weights the model takes as far as they fit.
            folds: scores the run by a cross-validation with this many folds of the training data, in place of
                validation data; the run itself learns from all examples. 1: holds out a fifth, where a config would do
                that by itself. By default, what the config says, for at most 2,000 examples without `validation`.
            resume: continues the run in the folder, with its own state. `trainer.num_epochs` and `trainer.patience` may
                change, and files may have moved if their content is the same. A finished run is left as it is, unless
                its config changes.
            force: removes the folder's earlier run.
            self_contained: copies the files of the biLM and of the transformer into the run.
            predictions: `"validation"` or `"test"` or both: the data for which the best epoch's predictions are
                written, with only what is scored. A fold always writes those of the examples held out.
            callbacks: called after every step and epoch, in addition to the progress bar and the trackers.

    Returns:
        the metrics of the best epoch (`best`) and of the test set (`test`).

    Raises:
        ConfigError: the config has problems; all are named.
        DataError: a data set is missing, or an example does not have the columns of the task.
        RunError: the folder holds a run, and neither `resume` nor `force` is given.
        ArgumentError: `validation` or `test` is given without `train`.
    """
    from elmo_tasks.runs.train import train as train_run  # here, since it imports datasets and accelerate

    given = {"train_data_path": train, "validation_data_path": validation, "test_data_path": test}
    present = {key for key, source in given.items() if source is not None}
    if present and "train_data_path" not in present:
        raise ArgumentError("expected train; validation and test may come with it")
    if not (logging.getLogger().handlers or logging.getLogger("elmo_tasks").handlers):
        set_up_logging(logging.INFO)
    return train_run(config, run_folder, datasets=given if present else None, **settings)


def load(
    run: RunPaths,
    *,
    predicates: str | Path | Predictor | None = None,
    device: Device | None = None,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    overrides: Overrides = (),
    format: Literal["allennlp"] | None = None,
) -> Predictor:
    """The predictor of a trained run: call it with a text, a dict, or a list of them.

    Arguments:
        run: the folder or the archive of the run, or the name of an installed model; a list of them for an ensemble,
            which averages their outputs.
        predicates: for semantic roles, the run of a tagger that finds the predicates; by default, the installed model
            that `run` names.
        device: `auto` uses a GPU if there is one, `cuda` requires one; by default, the setting of the run's config.
        batch_tokens: the most tokens of a batch.
        overrides: changes of the run's config, `{"key.path": value}` or `["key.path=value"]`; `{"calibrated": False}`
            for the model's own probabilities.
        format: `allennlp` for inputs and results in the keys of AllenNLP's predictors, see `AllenNlpPredictor`.

    Raises:
        RunError: there is no run or no finished epoch, or its biLM has moved or changed.
        ElmoTasksError: `predicates` does not find predicates, or the model does not need them.
    """
    check_choice("format", format, ("allennlp", None))
    if predicates is not None:
        check_argument("predicates", predicates, (str, Path, Predictor), "a run, or its predictor")
    if isinstance(predicates, (str, Path)):
        predicates = load(predicates, device=device, batch_tokens=batch_tokens)
    predictor = load_predictor(
        run, overrides=with_device(device, overrides), batch_tokens=batch_tokens, predicates=predicates
    )
    if format != "allennlp":
        return predictor
    with importing_extra():
        from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor

    return AllenNlpPredictor(predictor)


def show(predictor: Predictor, inputs: Input | Sequence[Input], *, explain: bool = False) -> Page:
    """What a predictor finds, in colours, for notebooks.

    Arguments:
        inputs: a text, a dict, or a list of them.
        explain: also shows how much each token counts.

    Returns:
        a page, which notebooks show; its `html` is that of `elmo-tasks predict --html`.

    Raises:
        ElmoTasksError: the predictor's results are in AllenNLP's keys.
    """
    with importing_extra():
        from elmo_tasks.extras.html.html import page_of

    check_argument("predictor", predictor, Predictor, "a predictor, as elmo_tasks.load gives it")
    if predictor.keys:
        raise ElmoTasksError(
            f"results in {predictor.keys} keys cannot be drawn; load the run without format='allennlp'"
        )
    return page_of(describe(predictor.task, result) for result in predictor(inputs, explain=explain))


def similarity(
    word: str,
    sentences: str | Sequence[str | Sequence[str]],
    *,
    bilm: str | Path | BiLM | FastBiLM = DEFAULT_BILM,
    static: str | Path | None = None,
) -> WordSimilarities:
    """How similar the vectors of a word are in different sentences, layer by layer: all pairs of its occurrences.

    Arguments:
        word: a token of each sentence, whatever its case.
        sentences: each a text, which is read as one sentence, or a list of tokens. One text is one sentence.
        bilm: as for `embed`.
        static: a file of word vectors such as GloVe's, which are the same in every sentence.

    Raises:
        WeightsError: the biLM's files are missing or damaged.
        DataError: the file of word vectors is missing or damaged.
        ElmoTasksError: a sentence does not have the word, or the word occurs only once.
    """
    with importing_extra():
        from elmo_tasks.extras.probes.neighbors import word_similarities
        from elmo_tasks.extras.vectors.embed import with_tokenizer
    from elmo_tasks.modules.word_vectors import WordVectorFile

    bilm, tokenizer = with_tokenizer(bilm, "float32")
    given = [sentences] if isinstance(sentences, str) else sentences
    check_several("sentences", given, "a text, or a list of texts or lists of tokens")
    split = [[token.text for token in tokenizer.words(each)] if isinstance(each, str) else each for each in given]
    return word_similarities(bilm, word, split, static=WordVectorFile(static) if static else None)


def tokenize(text: str, tokenizer: str = "treebank") -> list[list[str]]:
    """The sentences of a text, each a list of tokens, as the predictors split raw text.

    Arguments:
        tokenizer: as for `elmo-tasks embed --tokenizer`: `treebank` (English), `unicode` (any language), `whitespace`
            (tokenized text), or a JSON object. The one of a predictor is set by its run's config.

    Raises:
        ElmoTasksError: there is no such tokenizer.
    """
    check_argument("text", text, str, "a string")
    return list(parse_tokenizer(tokenizer).strings(text))
