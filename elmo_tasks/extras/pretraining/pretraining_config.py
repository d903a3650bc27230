"""What a pretraining is made of: the biLM, its text, and how it is trained."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, field_validator

from elmo_tasks.config import Config
from elmo_tasks.elmo.options import PUBLISHED_OPTIONS, TINY_OPTIONS, BiLMOptions
from elmo_tasks.extras.pretraining.prepare import CorpusConfig
from elmo_tasks.extras.pretraining.softmax import SampledSoftmax, SoftmaxConfig
from elmo_tasks.extras.pretraining.tokenize_files import num_processors
from elmo_tasks.training.optimizers import AdamW, OptimizerConfig
from elmo_tasks.training.schedules import CosineDecay, SchedulerConfig
from elmo_tasks.training.trainer_config import BaseTrainerConfig, Precision

Count = Annotated[int, Field(ge=1)]
SizeName = Literal["tiny", "small", "medium", "original"]


class PretrainerConfig(BaseTrainerConfig):
    """How a language model is trained. Names that a task's trainer has too have the same meaning."""

    num_epochs: Annotated[float, Field(gt=0)] = Field(1.0, description="how often the text is read, also fractions")
    batch_size: Count = Field(128, description="streams that are read at once, of all processes together")
    unroll_steps: Count = Field(20, description="tokens of each stream in a step; gradients reach no further back")
    reset_share: Annotated[float, Field(ge=0, le=1)] = Field(
        0.25,
        description="share of the sentences that are read from a state of zeros, as ELMo reads all; the others "
        "continue from the state before them, as all do in bilm-tf (0)",
    )
    optimizer: OptimizerConfig = AdamW(lr=0.002)
    learning_rate_scheduler: SchedulerConfig = CosineDecay(warmup_steps=200)
    grad_norm: Annotated[float, Field(gt=0)] | None = Field(
        10.0, description="scales the gradients of all parameters down to this norm"
    )
    evaluate_every_steps: Count | None = Field(
        None, description="evaluates on held-out text this often; by default, twenty times"
    )
    evaluation_tokens: Count = Field(
        100_000, description="held-out tokens, from the beginning, to evaluate on during training; at its end, all"
    )
    checkpoint_every_steps: Count = Field(500, description="saves the state from which to resume this often")
    precision: Precision = Field("auto", description="of the products; 'auto' takes bfloat16 where it is faster")
    num_workers: Annotated[int, Field(ge=0)] | None = Field(
        None, description="additional processes that prepare windows; by default none, or up to 8 for a GPU"
    )

    def workers(self, device: torch.device) -> int:
        """The number of processes that prepare windows for a device."""
        if self.num_workers is not None:
            return self.num_workers
        return 0 if device.type == "cpu" else min(8, max(1, num_processors() - 1))

    @field_validator("learning_rate_scheduler")
    @classmethod
    def _moves_by_step(cls, scheduler: SchedulerConfig) -> SchedulerConfig:
        if scheduler.moves != "step":
            kinds = SchedulerConfig.choices().items()
            fitting = ", ".join(name for name, kind in kinds if getattr(kind, "moves", None) == "step")
            raise ValueError(
                f"moves after the validation of an epoch, which pretraining does not have; expected {fitting}"
            )
        return scheduler


class PretrainingConfig(Config):
    """A whole pretraining, or fine-tuning, of a biLM."""

    hints_for_other_configs = {  # noqa: RUF012
        "dataset_reader": "describes a task, not the pretraining of a biLM; use `elmo-tasks train`"
    }

    bilm: SizeName | BiLMOptions = Field(
        "small", description="one of the published architectures, 'tiny', or the contents of an options.json"
    )
    corpus: CorpusConfig
    vocabulary_size: Annotated[int, Field(ge=4)] | None = Field(
        100_000, description="words to predict, the most frequent ones; null: all"
    )
    min_count: Count = Field(
        2,
        description="rarer words of the training text are predicted as the unknown word; with 1 and a large vocabulary "
        "there are none, and nothing teaches how likely the unknown word is",
    )
    softmax: SoftmaxConfig = SampledSoftmax()
    dropout: Annotated[float, Field(ge=0, lt=1)] = Field(0.1, description="of the inputs of LSTMs and softmax")
    trainer: PretrainerConfig = PretrainerConfig()
    half_precision: bool = Field(False, description="writes the weights as float16: half the size")
    random_seed: Annotated[int, Field(ge=0, lt=2**63)] = 13370

    def options(self) -> BiLMOptions:
        """The biLM's architecture."""
        if isinstance(self.bilm, BiLMOptions):
            return self.bilm
        return {**PUBLISHED_OPTIONS, "tiny": TINY_OPTIONS}[self.bilm]
