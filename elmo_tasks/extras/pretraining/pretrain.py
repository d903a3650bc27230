"""Trains a biLM on text: builds its parts in order, fits it, and writes the biLM and the results."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import math
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import pydantic
import torch
from accelerate.utils import gather_object, recursively_apply, send_to_device
from torch import Tensor, nn

from elmo_tasks.config import Config, load_config, to_json
from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.elmo.bilm_files import bilm_folder
from elmo_tasks.elmo.options import VOCABULARY_FILE
from elmo_tasks.errors import RunError, WeightsError, counted, some_of
from elmo_tasks.extras.pretraining.corpus import Corpus
from elmo_tasks.extras.pretraining.language_model import SOFTMAX_FILE, LanguageModel, LayerStates
from elmo_tasks.extras.pretraining.prepare import read_text
from elmo_tasks.extras.pretraining.pretraining_config import PretrainerConfig, PretrainingConfig
from elmo_tasks.extras.pretraining.scores import evaluate_perplexity, unigram_perplexity
from elmo_tasks.extras.pretraining.softmax import (
    UNKNOWN_NUMBER,
    Candidates,
    OutputVocabulary,
    SoftmaxConfig,
    most_frequent,
)
from elmo_tasks.extras.pretraining.windows import SlotReader, TokenStreams, Window
from elmo_tasks.extras.raw_text import tokenizer_of_bilm
from elmo_tasks.files.json_files import Number, read_json, read_record, write_json
from elmo_tasks.files.locks import locked
from elmo_tasks.runs.folder import Folder
from elmo_tasks.runs.plan import Plan, plan_folder
from elmo_tasks.text.tokenizers import Tokenizer
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.processes import RunAccelerator, start_accelerator
from elmo_tasks.training.state import seed_everything
from elmo_tasks.training.trainer import Checkpoint, Evaluate, Objective, Step, Trainer
from elmo_tasks.training.trainer_config import product_type

logger = logging.getLogger(__name__)

Perplexities = dict[Literal["forward", "backward", "mean", "unknown_percent", "targets"], int | Number]

_EVALUATIONS = 20  # where the config does not say how often
_STEPS_TRIED = 4  # to estimate the time; the first takes far longer


class PretrainingFolder(Folder):
    """The folder of a pretraining and its files.

    config.json           the resolved config, with all defaults
    versions.json         the versions of Python and of the packages that made the run
    text.json             the prepared corpus and the vocabulary, by their hashes
    options.json          the biLM's architecture  )
    weights.hdf5          and weights              ) in the layout of bilm-tf and AllenNLP
    vocabulary.txt        the words that the softmax predicts, one per line, as in bilm-tf
    softmax.safetensors   the softmax's weights and biases
    log.jsonl             a line for each evaluation on held-out text
    results.json          the amount of text, the hours, and the final perplexities
    training.pt           the state from which training resumes
    tensorboard/          curves
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.text = self.path / "text.json"
        self.records = self.path / "log.jsonl"
        self.results = self.summary = self.path / "results.json"
        bilm = [self.path / name for name in ("options.json", "weights.hdf5", VOCABULARY_FILE, SOFTMAX_FILE)]
        self.files += (self.text, *bilm, self.records, self.results)
        self.begun += (self.text,)

    def adjustable(self) -> Collection[str]:
        """Where the text is: its content is checked."""
        names = ("paths", "train_data_path", "validation_data_path", "vocabulary")
        return tuple(f"corpus.{name}" for name in names) if self.text.is_file() else ()


class LogLine(Config):
    """What `results.json` takes from a line of the log."""

    model_config = pydantic.ConfigDict(extra="ignore")
    step: int
    targets: int
    held_out: Perplexities


class Results(Config):
    """The contents of `results.json`."""

    training_targets: int
    vocabulary: int
    trained_targets: int
    trained_hours: float
    before: Perplexities | None
    held_out: Perplexities
    held_out_unigram: Number


def pretrain(
    config_path: str | Path,
    folder: str | Path,
    *,
    overrides: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    start_from: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    dry_run: bool = False,
    announce: Callable[[Mapping[str, str]], None] = lambda plan: None,
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any]:
    """Trains a biLM on text, from random weights or from those of another biLM.

    For arguments that are not below, see `elmo_tasks.train`. Returns the contents of `results.json`.

    Arguments:
        start_from: the folder of a biLM to fine-tune; its architecture and vocabulary replace the config's.
        dry_run: only announces the plan of a training that would begin, and returns nothing. Only the prepared corpus
            is written, in the cache.
        announce: called before the training begins with the plan: names and values for a table.

    Raises:
        RunError: the folder holds a training that is not to be resumed or removed, or the biLM to start from; or its
            training began with other text; or another process writes there.
        ElmoTasksError: the loss is not finite.
    """
    config = load_config(config_path, PretrainingConfig, overrides, variables or {})
    run = PretrainingFolder(folder)
    accelerator = start_accelerator(config.trainer, run.tensorboard)
    if start_from and bilm_folder(start_from).resolve() == run.path.resolve():
        raise RunError(f"{run.path}: contains the biLM to start from; choose another folder for the result")
    if dry_run:
        announce(_build(config, run, start_from, accelerator, Plan("begins"), ()).estimate())
        return {}
    resolved = {**to_json(config), "from": str(start_from) if start_from else None}
    with locked(run.path) if accelerator.is_main_process else contextlib.nullcontext():
        plan = plan_folder(run, resolved, resume=resume, force=force, kind=PretrainingConfig)
        accelerator.wait_for_everyone()  # all processes check the folder before the first one writes to it
        if plan.state == "finished":
            logger.info("%s: finished before; nothing to do", run.path)
            return read_json(run.results, Results, "the results of a pretraining").model_dump()
        parts = _build(config, run, start_from, accelerator, plan, callbacks)
        trainer, held_out, estimate = parts.trainer, parts.held_out, parts.estimate()
        if accelerator.is_main_process:
            announce(estimate)
            if plan.begins:
                run.clear()
                write_json(run.text, parts.text)
                run.create(resolved)
            elif plan.changed:
                write_json(run.config, resolved)

        trainer.fit(held_out)
        accelerator.wait_for_everyone()
        results = _results(run, held_out, trainer.progress)
        if accelerator.is_main_process:
            with trainer.averaged():
                held_out.objective.model.save(run.path, half_precision=config.half_precision)
            write_json(run.results, results)
        accelerator.wait_for_everyone()
        return results


def _build(
    config: PretrainingConfig,
    run: PretrainingFolder,
    start_from: str | Path | None,
    accelerator: RunAccelerator,
    plan: Plan,
    callbacks: Sequence[Callback],
) -> _Parts:
    """Builds the parts of a pretraining in their order."""
    with accelerator.main_process_first():  # the first to read fills the cache for the others
        corpus = config.corpus.build()
    seed_everything(config.random_seed)
    model = _build_model(config, corpus, start_from)
    text = {"corpus": corpus.folder.name, "vocabulary": model.vocabulary.fingerprint()}
    if not plan.begins and run.text.is_file():  # earlier versions wrote none
        earlier = read_json(run.text, dict[str, str], "the hashes of a pretraining's text")
        if changed := [name for name in text if text[name] != earlier.get(name)]:
            raise RunError(
                f"{run.path}: cannot resume with other text: expected the {' and the '.join(changed)} that the run "
                "began with"
            )
    training, held_out = (model.reader(part, corpus.types) for part in (corpus.training, corpus.held_out))
    settings, seed, device = config.trainer, config.random_seed, accelerator.device
    process = accelerator.process_index, accelerator.num_processes
    streams = TokenStreams(
        training, settings.batch_size, settings.unroll_steps, seed, settings.reset_share, process=process
    )
    total = max(1, round(settings.num_epochs * streams.windows_per_epoch))
    agenda = _StreamAgenda(
        streams,
        settings,
        total,
        evaluate_every=settings.evaluate_every_steps or max(1, total // _EVALUATIONS),
        evaluate_first=start_from is not None,
        num_workers=settings.workers(device),
    )
    dtype = product_type(settings.precision, device)
    records = device.type == "cuda" and accelerator.num_processes == 1
    objective = StreamObjective(model, config.softmax, dtype, records=records)
    resume = not plan.begins
    trainer = Trainer(
        settings, objective, agenda, run.records, accelerator, seed=seed, resume=resume, callbacks=callbacks
    )
    return _Parts(corpus, text, trainer, _HeldOut(objective, held_out, settings.evaluation_tokens, streams))


@dataclasses.dataclass(frozen=True)
class _Parts:
    """What a pretraining is made of."""

    corpus: Corpus
    text: Mapping[str, str]  # the hashes of the corpus and the vocabulary
    trainer: Trainer
    held_out: _HeldOut

    def estimate(self) -> dict[str, str]:
        """What it will take: names and values for a table.

        All processes try out their first window, and the slowest one counts. The training is not affected.
        """
        corpus, trainer, streams, objective = self.corpus, self.trainer, self.held_out.streams, self.held_out.objective
        window, states, own_seconds = next(streams.windows(0)), objective.states, math.inf
        for _ in range(_STEPS_TRIED):  # without the update
            objective.states = states
            started = time.monotonic()
            loss = trainer.loss_of(window)
            trainer.accelerator.backward(loss)
            loss.item()
            own_seconds = min(own_seconds, time.monotonic() - started)
            trainer.optimizer.zero_grad()
        objective.states = states
        seconds = max(gather_object([own_seconds]))
        num_words, num_tokens = len(objective.model.vocabulary), len(corpus.training.tokens)
        unknown = 100.0 * float(streams.reader.count_targets(num_words)[UNKNOWN_NUMBER]) / num_tokens
        parameters = sum(parameter.numel() for parameter in trainer.parameters.values())
        precision = str(objective.dtype).removeprefix("torch.")
        hours, rate = trainer.agenda.total * seconds / 3600, streams.slots_per_window / seconds
        return {
            "corpus": str(corpus.folder),
            "tokens": f"{num_tokens:,} ({len(corpus.types):,} distinct), {len(corpus.held_out.tokens):,} held out",
            "vocabulary": f"{num_words:,} words; {unknown:.2f} % of the tokens are not among them",
            "parameters": f"{parameters:,}, products in {precision}",
            "steps": f"{trainer.agenda.total:,}",
            "estimated time": f"{hours:.1f} hours, {rate:,.0f} tokens/s",
        }


class StreamObjective(Objective):
    """The mean loss of a window's targets, in nats; each window begins with the states after the last one.

    Windows have no padding, and all of them the same shape.

    Arguments:
        dtype: of the products' factors.
        records: whether to record the largest part of a step as CUDA graphs, which start its thousand kernels at once.
    """

    def __init__(
        self, model: LanguageModel, softmax: SoftmaxConfig, dtype: torch.dtype, *, records: bool = False
    ) -> None:
        super().__init__(model)
        self.dtype = dtype
        self.states: LayerStates | None = None  # of this process's streams; None: zeros
        self._softmax = softmax
        self._records = records
        self._losses: Callable[..., tuple[Tensor, Tensor, LayerStates]] | None = None

    def forward(self, window: Window) -> Tensor:
        states = self.model.initial_states(window.inputs.shape[2]) if self.states is None else self.states
        drawn = self._softmax.draw(len(self.model.vocabulary), self.model.softmax_bias.device)
        candidates = (drawn.words, drawn.log_expected) if drawn else ()
        arguments = self.model.vectors(window, self.dtype), window.targets, window.resets, states, *candidates
        if self._losses is None:
            losses = _Losses(self.model, self.dtype)
            # As a function: a module would become a part of this one.
            self._losses = (_recorded(losses, arguments) if self._records else losses).__call__
        forward, backward, states = self._losses(*arguments)
        self.states = recursively_apply(Tensor.detach, states)  # a recorded graph says that all results have gradients
        return (forward + backward) / window.targets.numel()

    def state(self) -> dict[str, Any]:
        states = recursively_apply(Tensor.clone, self.states)  # or the whole window's outputs would be saved
        return {"dtype": str(self.dtype).removeprefix("torch."), "states": states}

    def load_state(self, state: dict[str, Any]) -> None:
        self.dtype = getattr(torch, state["dtype"])
        self.states = send_to_device(state["states"], self.model.softmax_bias.device)


class _Losses(nn.Module):
    """The losses of a window's tokens, and the states, from the tokens' vectors; see `LanguageModel.losses`."""

    def __init__(self, model: LanguageModel, dtype: torch.dtype) -> None:
        super().__init__()
        self._model, self._dtype = model, dtype

    def forward(
        self,
        vectors: tuple[Tensor, Tensor],
        targets: Tensor,
        resets: Tensor | None,
        states: LayerStates,
        *candidates: Tensor,
    ) -> tuple[Tensor, Tensor, LayerStates]:
        drawn = Candidates(*candidates) if candidates else None
        return self._model.losses(vectors, targets, resets, states, drawn, self._dtype)


def _recorded(losses: _Losses, arguments: tuple[Any, ...]) -> _Losses:
    """The same, recorded with arguments like these, which are copied, as one CUDA graph for each pass.

    The gradients of a step are where those of the next one will be: they cannot be accumulated over steps.
    """
    # PyTorch warns, once, that the gradients come from another stream than that of this recording.
    warnings.filterwarnings("ignore", "The AccumulateGrad node's stream")
    samples = recursively_apply(lambda each: each.detach().clone().requires_grad_(each.requires_grad), arguments)
    with torch.autocast("cuda", enabled=False):  # all factors have their type
        recorded: Any = torch.cuda.make_graphed_callables(losses, samples, allow_unused_input=True)
    return cast("_Losses", recorded)


@dataclasses.dataclass(frozen=True)
class _StreamAgenda:
    """A step for each window of the streams, up to the last one of the training; evaluations come after some steps."""

    streams: TokenStreams
    config: PretrainerConfig
    total: int
    evaluate_every: int
    evaluate_first: bool  # before the first step
    num_workers: int

    def rest(self, trainer: Trainer) -> Iterator[Step | Evaluate | Checkpoint]:
        progress = trainer.progress

        def goes_on() -> bool:
            return progress.step < self.total and not trainer.is_stopped

        if self.evaluate_first and progress.records == 0:
            yield Evaluate()
            yield Checkpoint()
        if progress.recent_steps and progress.step % self.evaluate_every == 0 and goes_on():
            yield Evaluate()  # a signal ended the training before this evaluation, or within it
        while goes_on():
            first = progress.step - progress.epoch * self.streams.windows_per_epoch
            windows = self.streams.windows(progress.epoch, first, self.num_workers)
            for window in itertools.islice(windows, self.total - progress.step):
                yield Step([(window, 1.0)])
                if progress.step % self.evaluate_every == 0 and goes_on():
                    yield Evaluate()
                if self.config.saves_after(progress.step):
                    yield Checkpoint()
                if trainer.is_stopped:
                    break
            if goes_on():
                progress.epoch += 1
        yield Checkpoint()  # before the last record, which a run that is resumed here writes again
        yield Evaluate(is_last=True)


@dataclasses.dataclass(frozen=True)
class _HeldOut:
    """Measures the perplexity of held-out text, and writes the biLM: the last time on all of the text."""

    objective: StreamObjective
    reader: SlotReader
    num_tokens: int  # of the evaluations during the training
    streams: TokenStreams

    def measure(self, trainer: Trainer, *, is_last: bool = False) -> dict[str, Any]:
        reader = self.reader if is_last or trainer.progress.step == 0 else self.reader.beginning(self.num_tokens)
        visible = trainer.accelerator.is_main_process
        return evaluate_perplexity(self.objective.model, reader, self.objective.dtype, visible=visible)

    def record(self, trainer: Trainer, metrics: dict[str, Any], seconds: float) -> tuple[dict[str, Any], float]:
        progress = trainer.progress
        if trainer.accelerator.is_main_process:
            self.objective.model.save(trainer.records.parent)
        targets, loss = progress.step * self.streams.slots_per_window, progress.mean_loss()
        record = {
            "step": progress.step,
            "targets": targets,
            "training_loss": loss,
            "learning_rate": trainer.optimizer.param_groups[0]["lr"],
            "seconds": round(progress.seconds, 1),
            "held_out": metrics,
        }
        logger.info(
            "step %d of %d, %s, %.0f tokens/s: loss %.3f; held-out perplexity %.1f",
            progress.step,
            trainer.agenda.total,
            counted(targets, "token"),
            targets / max(1e-9, progress.seconds),
            loss,
            metrics["mean"],
        )
        return record, metrics["mean"]


def _results(run: PretrainingFolder, held_out: _HeldOut, progress: Progress) -> dict[str, Any]:
    """The contents of `results.json`, after the last record of the log."""
    training, num_words = held_out.streams.reader, len(held_out.objective.model.vocabulary)
    first = read_record(run.records, 1, LogLine)  # of step 0, where a biLM is fine-tuned
    last = read_record(run.records, progress.records, LogLine)
    return {
        "training_targets": training.num_slots,
        "vocabulary": num_words,
        "trained_targets": last.targets,
        "trained_hours": round(progress.seconds / 3600, 3),
        "before": first.held_out if first.step == 0 else None,
        "held_out": last.held_out,
        "held_out_unigram": unigram_perplexity(training, held_out.reader, num_words),
    }


def _build_model(config: PretrainingConfig, corpus: Corpus, start_from: str | Path | None) -> LanguageModel:
    """A new language model, or that of the folder; a biLM without a softmax gets a new one."""
    if start_from and LanguageModel.is_in_folder(start_from):
        return LanguageModel.load(start_from, config.dropout)
    if config.corpus.vocabulary:
        vocabulary = OutputVocabulary.load(config.corpus.vocabulary)
    else:
        vocabulary = most_frequent(corpus.types, corpus.counts, config.vocabulary_size, config.min_count)
    if start_from is None:
        if unused := config.options().unused_keys():
            keys = "the config's keys dropout, softmax and trainer describe the training"
            logger.warning("bilm: these keys have no effect: %s; %s", some_of(unused, most=10), keys)
        return LanguageModel.untrained(config.options(), vocabulary, config.dropout)
    bilm = BiLM.load(start_from)
    if bilm.options.lexicon:
        raise WeightsError(f"{start_from}: a biLM with a list of words; expected one that reads only characters")
    logger.warning("%s: the biLM has no softmax and vocabulary; it starts with new, untrained ones", start_from)
    return LanguageModel(bilm, vocabulary, config.dropout)


def perplexity_of_text(
    bilm: str | Path, paths: Sequence[str], tokenizer: Tokenizer | None = None, device: torch.device | None = None
) -> dict[str, float]:
    """The perplexities of a biLM on text; see `evaluate_perplexity`, and `read_text` for `paths` and `tokenizer`.

    Arguments:
        bilm: the folder of a biLM with its softmax and vocabulary.
        tokenizer: by default that of the text that the biLM was trained on.
        device: by default a GPU, if there is one.

    Raises:
        WeightsError: the biLM's files are missing or damaged.
        DataError: the text is empty or cannot be read.
    """
    part, types = read_text(paths, tokenizer or tokenizer_of_bilm(bilm_folder(bilm)))
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = LanguageModel.load(bilm).to(device)
    return evaluate_perplexity(model, model.reader(part, types))
