"""Builds the parts of a pretraining, in order."""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from elmo_tasks.config import load_config, to_json
from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.elmo.bilm_files import BiLMFiles, bilm_folder
from elmo_tasks.errors import RunError
from elmo_tasks.files import write_json
from elmo_tasks.pretraining.config import PretrainerConfig, PretrainingConfig
from elmo_tasks.pretraining.corpus import Corpus
from elmo_tasks.pretraining.language_model import LanguageModel
from elmo_tasks.pretraining.objective import StreamObjective, try_out
from elmo_tasks.pretraining.output_vocabulary import UNKNOWN_NUMBER, OutputVocabulary, most_frequent
from elmo_tasks.pretraining.perplexity import evaluate_perplexity, unigram_perplexity
from elmo_tasks.pretraining.prepare import read_text
from elmo_tasks.pretraining.runs import PretrainingFolder
from elmo_tasks.pretraining.windows import SlotReader, TokenStreams, Window
from elmo_tasks.runs import read_record
from elmo_tasks.training.callbacks import Callback
from elmo_tasks.training.loop import Loop
from elmo_tasks.training.random_state import random_state, seed_everything, set_random_state

logger = logging.getLogger(__name__)

_EVALUATIONS = 20  # where the config does not say how often


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a pretraining comes to, found out before it begins."""

    corpus: str
    tokens: int
    held_out_tokens: int
    distinct_tokens: int
    vocabulary: int
    unknown_percent: float  # of the training text's tokens
    parameters: int
    precision: str
    steps: int
    tokens_per_second: float
    hours: float
    memory_gigabytes: float

    def as_rows(self) -> list[tuple[str, str]]:
        """Names and values for a table."""
        return [
            ("corpus", self.corpus),
            ("tokens", f"{self.tokens:,} ({self.distinct_tokens:,} distinct), {self.held_out_tokens:,} held out"),
            ("vocabulary", f"{self.vocabulary:,} words; {self.unknown_percent:.2f} % of the tokens are not among them"),
            ("parameters", f"{self.parameters / 1e6:.1f} million, products in {self.precision}"),
            ("steps", f"{self.steps:,}"),
            ("estimated time", f"{self.hours:.1f} hours, {self.tokens_per_second:,.0f} tokens/s"),
            ("estimated memory", f"{self.memory_gigabytes:.1f} GB"),
        ]


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
    announce: Callable[[Plan], None] = lambda plan: None,
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any] | None:
    """Trains a biLM on text, from nothing or from another biLM's weights.

    Arguments:
        folder: where the biLM and everything that comes with it is written; see `runs`.
        overrides: `key.path=value`, over what the config says.
        variables: external variables of the Jsonnet file.
        start_from: the folder of a biLM to fine-tune; its architecture and vocabulary stand in for the config's.
        resume: goes on with what the folder holds; a training that has finished is left as it is.
        force: removes what an earlier training left in the folder.
        dry_run: ends before the training, and writes nothing but the prepared corpus in the cache.
        announce: called with the plan before the training begins.
        callbacks: called after every step and evaluation, in addition to the progress bar and the trackers.

    Returns:
        what `results.json` holds, or None after a dry run.

    Raises:
        ConfigError: the config has problems, all of them named.
        RunError: the folder holds a training, and neither `resume` nor `force` is given; or it holds the biLM to start
            from, or was begun with other text.
        ElmoTasksError: the loss is no longer finite.
    """
    config, run = load_config(config_path, PretrainingConfig, overrides, variables or {}), PretrainingFolder(folder)
    accelerator = config.trainer.accelerator(run.tensorboard)
    if start_from and bilm_folder(start_from).resolve() == run.path.resolve():
        raise RunError(f"{run.path}: the biLM of --from lies in this folder; -s names another one for what comes of it")
    described = {**to_json(config), "from": str(start_from) if start_from else None}
    begins = dry_run or run.claim(described, resume=resume, force=force, kind=PretrainingConfig)
    accelerator.wait_for_everyone()  # nobody writes before everybody has looked
    if not begins and run.results.is_file():
        logger.info("%s: finished before; nothing to do", run.path)
        return json.loads(run.results.read_text(encoding="utf-8"))

    with accelerator.main_process_first():  # the first to read fills the cache for the others
        corpus = config.corpus.build()
    seed_everything(config.random_seed)
    model = _build_model(config, corpus, start_from)
    text = {"corpus": corpus.folder.name, "vocabulary": model.vocabulary.fingerprint()}
    if not begins:
        _check_text(run, text)
    training, held_out = _build_readers(corpus, model)
    trainer = config.trainer
    streams = TokenStreams(
        training,
        trainer.batch_size,
        trainer.unroll_steps,
        config.random_seed,
        trainer.reset_share,
        process=(accelerator.process_index, accelerator.num_processes),
    )
    objective = StreamObjective(model, config.softmax, _product_dtype(trainer.precision, accelerator.device))
    num_steps = max(1, round(trainer.num_epochs * streams.windows_per_epoch))
    loop = Loop(trainer, objective, run, accelerator, num_steps, callbacks)
    resumes = not begins and run.training_state.is_file()
    if resumes:
        loop.resume()  # before the plan, since it decides on the precision
    plan = _plan(corpus, streams, training, loop, objective, trainer)
    if accelerator.is_main_process:
        announce(plan)
    if dry_run:
        return None
    if begins and accelerator.is_main_process:  # the text could be read, and the model fits
        if force:
            run.clear()
        write_json(run.text, text)
        run.begin(described)
    if not resumes:
        # Each process drops other units and draws other candidates; with one process this is the seed's own sequence.
        seed_everything(config.random_seed + accelerator.process_index)

    progress, evaluate_every = loop.progress, trainer.evaluate_every_steps or max(1, num_steps // _EVALUATIONS)
    model.train()
    with loop:
        if start_from and progress.records == 0:
            _evaluate(loop, objective, trainer, held_out)
            loop.save()
        for epoch, window in _windows(streams, progress.step, num_steps):
            progress.epoch = epoch
            loop.step([(window, 1.0)])
            if progress.step % evaluate_every == 0 and progress.step < num_steps:
                _evaluate(loop, objective, trainer, held_out.beginning(trainer.evaluation_tokens))
            if progress.step % trainer.checkpoint_every_steps == 0:
                loop.save()
        loop.save()  # before the last line of the log, which resuming from here writes anew
        last = _evaluate(loop, objective, trainer, held_out)

    accelerator.wait_for_everyone()
    results = _results(run, last, training, held_out, num_words=len(model.vocabulary), seconds=progress.seconds)
    if accelerator.is_main_process:
        with loop.averaged():
            model.save(run.path, half_precision=config.half_precision)
        write_json(run.results, results)
    accelerator.wait_for_everyone()
    return results


def _check_text(run: PretrainingFolder, text: Mapping[str, str]) -> None:
    """Makes sure that a training goes on with the text and the words that it began with, where it has a record of them.

    Raises:
        RunError: the corpus or the vocabulary is another one.
    """
    if not run.text.is_file():
        return
    earlier = json.loads(run.text.read_text(encoding="utf-8"))
    if changed := [name for name in text if text[name] != earlier[name]]:
        raise RunError(
            f"{run.path}: cannot resume with other text: not the {' and the '.join(changed)} that the run began with"
        )


def _build_readers(corpus: Corpus, model: LanguageModel) -> list[SlotReader]:
    """Readers of the training text and of the held-out text."""
    max_characters = model.bilm.options.char_cnn.max_characters_per_token
    parts = (corpus.training, corpus.held_out)
    return [SlotReader(part, corpus.types, model.vocabulary, max_characters) for part in parts]


def _windows(streams: TokenStreams, first: int, end: int) -> Iterator[tuple[int, Window]]:
    """(epoch, window) for each step from the `first` to before the `end`; the streams do not break between epochs."""
    while first < end:
        epoch, place = divmod(first, streams.windows_per_epoch)
        for window in itertools.islice(streams.windows(epoch, place), end - first):
            yield epoch, window
            first += 1


def _evaluate(loop: Loop, objective: StreamObjective, trainer: PretrainerConfig, reader: SlotReader) -> dict[str, Any]:
    """Measures the perplexity of held-out text, writes the biLM as it is, and adds to the log the record returned."""
    main, progress = loop.accelerator.is_main_process, loop.progress
    with loop.averaged():
        perplexity = evaluate_perplexity(objective.model, reader, objective.dtype, visible=main)
        if main:
            objective.model.save(loop.folder.path)
    record = {
        "step": progress.step,
        "targets": progress.step * trainer.batch_size * trainer.unroll_steps,
        "training_loss": progress.mean_loss(),
        "learning_rate": loop.optimizer.param_groups[0]["lr"],
        "seconds": round(progress.seconds, 1),
        "held_out": perplexity.as_record(),
    }
    message = "step %d of %d, %.1f M tokens, %.0f tokens/s: loss %.3f; held-out perplexity %.1f"
    targets, loss = record["targets"], record["training_loss"]
    rate = targets / max(1e-9, progress.seconds)
    logger.info(message, progress.step, loop.num_steps, targets / 1e6, rate, loss, perplexity.mean)
    loop.record(record)
    return record


def _results(
    run: PretrainingFolder,
    last: Mapping[str, Any],
    training: SlotReader,
    held_out: SlotReader,
    *,
    num_words: int,
    seconds: float,
) -> dict[str, Any]:
    """What `results.json` says of a training that has come to its end with this last record of its log."""
    first = read_record(run.records, 1)  # of step 0, where a biLM is fine-tuned
    return {
        "training_targets": training.num_slots,
        "vocabulary": num_words,
        "trained_targets": last["targets"],
        "trained_hours": round(seconds / 3600, 3),
        "before": first["held_out"] if first["step"] == 0 else None,
        "held_out": last["held_out"],
        "held_out_unigram": unigram_perplexity(training, held_out, num_words),
    }


def _build_model(config: PretrainingConfig, corpus: Corpus, start_from: str | Path | None) -> LanguageModel:
    """A new language model, or that of a folder; a biLM without a softmax gets a new one."""
    if start_from is None:
        return LanguageModel.untrained(config.options(), _corpus_vocabulary(config, corpus), config.dropout)
    if LanguageModel.is_in_folder(start_from):
        return LanguageModel.load(start_from, config.dropout)
    logger.warning("%s: no softmax and vocabulary beside the biLM; it starts with new, untrained ones", start_from)
    files = BiLMFiles.in_folder(start_from)
    return LanguageModel(BiLM.load(files.options, files.weights), _corpus_vocabulary(config, corpus), config.dropout)


def _corpus_vocabulary(config: PretrainingConfig, corpus: Corpus) -> OutputVocabulary:
    return most_frequent(corpus.types, corpus.counts, config.vocabulary_size, config.min_count)


def _product_dtype(precision: str, device: torch.device) -> torch.dtype:
    if precision == "auto":
        return torch.bfloat16 if _bfloat16_is_faster(device) else torch.float32
    return getattr(torch, precision)


def _bfloat16_is_faster(device: torch.device) -> bool:
    """Whether a product of a training step's size takes less time, by a quarter at least, in bfloat16."""
    times = []
    for dtype in (torch.float32, torch.bfloat16):
        factors = torch.ones(1024, 1024, dtype=dtype, device=device)
        best = math.inf
        for _ in range(5):
            started = time.perf_counter()
            (factors @ factors)[0, 0].item()
            best = min(best, time.perf_counter() - started)
        times.append(best)
    return times[1] < 0.75 * times[0]


def _plan(
    corpus: Corpus,
    streams: TokenStreams,
    training: SlotReader,
    loop: Loop,
    objective: StreamObjective,
    trainer: PretrainerConfig,
) -> Plan:
    """The plan, for which the first window is tried out; nothing that training depends on is changed."""
    generators = random_state()
    seconds, memory = try_out(loop, objective, next(streams.windows(0)))
    set_random_state(generators)
    num_words = len(objective.model.vocabulary)
    counts = training.count_targets(num_words)
    return Plan(
        corpus=str(corpus.folder),
        tokens=corpus.training.num_tokens,
        held_out_tokens=corpus.held_out.num_tokens,
        distinct_tokens=len(corpus.types),
        vocabulary=num_words,
        unknown_percent=100.0 * float(counts[UNKNOWN_NUMBER]) / corpus.training.num_tokens,
        parameters=sum(parameter.numel() for parameter in loop.parameters.values()),
        precision=str(objective.dtype).removeprefix("torch."),
        steps=loop.num_steps,
        tokens_per_second=trainer.batch_size * trainer.unroll_steps / seconds,
        hours=loop.num_steps * seconds / 3600,
        memory_gigabytes=memory / 1e9,
    )


def perplexity_of_text(bilm: str | Path, paths: Sequence[str], *, tokenized: bool = False) -> dict[str, float]:
    """The perplexities of a biLM on text, with the softmax over its whole vocabulary; see `evaluate_perplexity`.

    Arguments:
        bilm: the folder of a biLM with its softmax and vocabulary.
        paths: files or globs of text, compressed or not.
        tokenized: a line is a sentence with white space between its tokens; otherwise it is a paragraph of raw text.

    Raises:
        WeightsError: the biLM's files are missing or damaged.
        DataError: there is no text, or it cannot be read.
    """
    part, types = read_text(paths, tokenized=tokenized)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = LanguageModel.load(bilm).to(device)
    reader = SlotReader(part, types, model.vocabulary, model.bilm.options.char_cnn.max_characters_per_token)
    return evaluate_perplexity(model, reader).as_record()
