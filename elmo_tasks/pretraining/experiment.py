"""Builds the parts of a pretraining, in order."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from elmo_tasks.config import load_config, to_json
from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.elmo.bilm_files import BiLMFiles, bilm_folder
from elmo_tasks.errors import RunError
from elmo_tasks.files import write_json
from elmo_tasks.pretraining.config import PretrainingConfig
from elmo_tasks.pretraining.corpus import Corpus
from elmo_tasks.pretraining.language_model import LanguageModel
from elmo_tasks.pretraining.output_vocabulary import UNKNOWN_NUMBER, OutputVocabulary, most_frequent
from elmo_tasks.pretraining.perplexity import Perplexity, evaluate_perplexity, unigram_perplexity
from elmo_tasks.pretraining.pretrainer import Pretrainer
from elmo_tasks.pretraining.runs import PretrainingFolder
from elmo_tasks.pretraining.texts import read_text
from elmo_tasks.pretraining.windows import SlotReader
from elmo_tasks.runs import read_state
from elmo_tasks.training.random_state import random_state, seed_everything, set_random_state

logger = logging.getLogger(__name__)


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
) -> dict[str, Any] | None:
    """Trains a biLM on text, from nothing or from another biLM's weights.

    Arguments:
        folder: where the biLM and everything beside it is written; see `runs`.
        overrides: `key.path=value`, over what the config says.
        variables: external variables of the Jsonnet file.
        start_from: the folder of a biLM to fine-tune; its architecture and vocabulary stand in for the config's.
        resume: goes on with what the folder holds; a training that has finished is left as it is.
        force: removes what an earlier training left in the folder.
        dry_run: ends before the training, and writes nothing but the prepared corpus in the cache.
        announce: called with the plan before the training begins.

    Returns:
        what `results.json` holds, or None after a dry run.

    Raises:
        ConfigError: the config has problems, all of them named.
        RunError: the folder holds a training, and neither `resume` nor `force` is given; or it holds the biLM to start
            from, or was begun with other text.
    """
    config = load_config(config_path, PretrainingConfig, overrides, variables or {})
    run = PretrainingFolder(folder)
    accelerator = config.trainer.accelerator()
    main = accelerator.is_main_process
    if start_from and bilm_folder(start_from).resolve() == run.path.resolve():
        raise RunError(f"{run.path}: the biLM of --from lies in this folder; -s names another one for what comes of it")
    described = {**to_json(config), "from": str(start_from) if start_from else None}
    begins = dry_run or run.claim(described, resume=resume, force=force)
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
    state = read_state(run.training_state) if not begins and run.training_state.is_file() else None
    pretrainer = _build_pretrainer(config, corpus, model, run, accelerator, state)
    plan = _plan(corpus, pretrainer)
    if main:
        announce(plan)
    if dry_run:
        return None

    if begins and main:  # the text could be read, and the model fits
        if force:
            run.clear()
        write_json(run.text, text)
        run.begin(described)
    if state:
        pretrainer.resume(state)
    else:
        # Each process drops other units and draws other candidates; with one process this is the seed's own sequence.
        seed_everything(config.random_seed + accelerator.process_index)
    results = _results(pretrainer, pretrainer.train(evaluate_first=start_from is not None))
    if main:
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


def _build_pretrainer(
    config: PretrainingConfig,
    corpus: Corpus,
    model: LanguageModel,
    run: PretrainingFolder,
    accelerator: Accelerator,
    state: Mapping[str, Any] | None,
) -> Pretrainer:
    """The pretrainer before its first step; a state that it is to resume decides on the precision."""
    dtype = getattr(torch, state["dtype"]) if state else _product_dtype(config.trainer.precision, accelerator.device)
    max_characters = model.bilm.options.char_cnn.max_characters_per_token
    training, held_out = (
        SlotReader(part, corpus.types, model.vocabulary, max_characters) for part in (corpus.training, corpus.held_out)
    )
    return Pretrainer(
        config.trainer, model, config.softmax, training, held_out, run, accelerator, dtype, config.random_seed
    )


def _results(pretrainer: Pretrainer, after: Perplexity) -> dict[str, Any]:
    """What `results.json` says of a training that has come to its end."""
    num_words = len(pretrainer.model.vocabulary)
    return {
        "training_targets": pretrainer.training.num_slots,
        "vocabulary": num_words,
        "trained_targets": pretrainer.position.targets,
        "trained_hours": round(pretrainer.position.seconds / 3600, 3),
        "before": pretrainer.before,
        "held_out": after.as_record(),
        "held_out_unigram": unigram_perplexity(pretrainer.training, pretrainer.held_out, num_words),
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


def _plan(corpus: Corpus, pretrainer: Pretrainer) -> Plan:
    """The plan, for which the first window is tried out; nothing that training depends on is changed."""
    generators = random_state()
    seconds, memory = pretrainer.try_out()
    set_random_state(generators)
    counts = pretrainer.training.count_targets(len(pretrainer.model.vocabulary))
    rate = pretrainer.targets_per_step / seconds
    return Plan(
        corpus=str(corpus.folder),
        tokens=corpus.training.num_tokens,
        held_out_tokens=corpus.held_out.num_tokens,
        distinct_tokens=len(corpus.types),
        vocabulary=len(pretrainer.model.vocabulary),
        unknown_percent=100.0 * float(counts[UNKNOWN_NUMBER]) / corpus.training.num_tokens,
        parameters=sum(parameter.numel() for parameter in pretrainer.parameters),
        precision=str(pretrainer.dtype).removeprefix("torch."),
        steps=pretrainer.num_steps,
        tokens_per_second=rate,
        hours=pretrainer.num_steps * seconds / 3600,
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
