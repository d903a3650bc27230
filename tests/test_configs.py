"""Every config that is shipped trains, evaluates and predicts, on sample data that it finds by itself."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config import load_config, to_json
from elmo_tasks.config.packaged import CPU_RULE
from elmo_tasks.extras.samples import ALL_TASKS, write_sample_data
from elmo_tasks.models.crf_tagger import CrfTaggerConfig
from elmo_tasks.predictors import build_predictor
from elmo_tasks.runs import train
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.load import load_run
from tests.stopping import Killed, stop_at

CONFIGS = Path(__file__).parent.parent / "configs"
TASKS = sorted(
    str(path.relative_to(CONFIGS))
    for path in CONFIGS.rglob("*.jsonnet")
    if path.parent.name not in ("bilm", "small") and path.stem != "quickstart"
)
BASELINES = [name for name in TASKS if "baselines" in Path(name).parts]

RESUMED = [name for name in TASKS if name.startswith("cpu/") and name not in BASELINES] + ["squad_bidaf.jsonnet"]

# Texts for the predictors, by the type of the model.
TEXT = "Mary Collins joined Boeing as coach. She closed a mill."
INPUTS: dict[str, Mapping[str, Any]] = {
    "crf_tagger": {"text": TEXT},
    "bcn": {"text": TEXT},
    "text_classifier": {"text": TEXT},
    "esim": {"premise": TEXT, "hypothesis": "Nobody joined Boeing."},
    "decomposable_attention": {"premise": TEXT, "hypothesis": "Nobody joined Boeing."},
    "bidaf": {"passage": TEXT, "question": "Who closed a mill?"},
    "bidaf_self_attention": {"passage": TEXT, "question": "Who closed a mill?"},
    "srl": {"tokens": TEXT.split(), "predicates": [2, 7]},
    "coref": {"text": TEXT},
}

# The formats that the sample data does not have.
CHUNKS = """\
The DT B-NP
council NN I-NP
closed VBD B-VP
in IN B-PP
May NNP B-NP

Nobody NN B-NP
minded VBD B-VP

"""
NAMES = """\
#begin document (nw/names); part 000
nw/names 0 0 Mary NNP * - - - - (PERSON* -
nw/names 0 1 Collins NNP * - - - - *) -
nw/names 0 2 left VBD * - - - - * -
nw/names 0 3 Oslo NNP * - - - - (GPE) -

#end document
"""


@pytest.fixture(scope="module")
def sample_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write_sample_data(folder, ALL_TASKS, sentences=(16, 4, 4))
    (folder / "chunking_conll2000").mkdir()
    for name in ("train.txt", "test.txt"):
        (folder / "chunking_conll2000" / name).write_text(CHUNKS * 8, encoding="utf-8")
    for split in ("train", "development", "test"):
        (folder / "conll-2012" / "v4" / "data" / split / "data" / "english" / "names.gold_conll").write_text(NAMES)
    return folder


@pytest.fixture(scope="module")
def variables(sample_folder: Path) -> dict[str, str]:
    return {"ELMO_TASKS_DATA": str(sample_folder)}


def input_of(config: ExperimentConfig) -> Mapping[str, Any]:
    return INPUTS[to_json(config)["model"]["type"]]


def config_of(name: str) -> ExperimentConfig:
    return load_config(CONFIGS / name, ExperimentConfig, (), {"ELMO_TASKS_DATA": "data"})


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TASKS if name not in BASELINES])
def test_trains_evaluates_predicts_and_resumes(name: str, variables: dict[str, str], tmp_path: Path) -> None:
    """A run that is killed after its first step and resumed is the uninterrupted one bit for bit."""
    config = load_config(CONFIGS / name, ExperimentConfig, (), variables)
    # All have two steps: a sentence has several predicates, and there are few questions and one document.
    batch_size = next((size for task, size in (("srl", 32), ("squad", 2)) if task in name), 8)
    overrides = [f"trainer.num_epochs={2 if 'coref' in name else 1}", f"data_loader.batch_size={batch_size}"]
    metrics = train.train(CONFIGS / name, tmp_path / "run", overrides=overrides, variables=variables)
    assert (tmp_path / "run" / "bilm.json").is_file()
    held_out, expected = config.validation_data_path, metrics["best"]["validation"]
    if config.test_data_path:
        held_out, expected = config.test_data_path, metrics["test"]
    (tmp_path / "run" / "learned.safetensors").unlink()  # some sample data has the same sentences in both files
    assert evaluate(tmp_path / "run", held_out) == pytest.approx(expected, abs=1e-3)
    run = load_run(tmp_path / "run")
    predictor = build_predictor(run.model, run.vocabulary)
    results = list(predictor.predict([input_of(config)]))
    assert results
    assert json.loads(json.dumps(results)) == results
    if name in RESUMED:
        overrides.append("trainer.checkpoint_every_steps=1")
        parts = functools.partial(
            train.train, CONFIGS / name, tmp_path / "parts", overrides=overrides, variables=variables
        )
        with stop_at(1), pytest.raises(Killed):
            parts()
        parts(resume=True)
        one, other = ((tmp_path / folder / "model.safetensors").read_bytes() for folder in ("parts", "run"))
        assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_takes_a_step_and_predicts(name: str, variables: dict[str, str]) -> None:
    """The rest is like its config with ELMo."""
    config = load_config(CONFIGS / name, ExperimentConfig, (), variables)
    data = Data.read(config)
    vocabulary = data.vocabulary(config)
    model = config.build_model(vocabulary, pretrained=True).train()
    model.prepare_training(data.training)
    optimizer = config.trainer.optimizer.build(list(model.named_parameters()))
    batch = model.task.collate(list(data.training)[:4], vocabulary)
    before = model.loss(model(batch), batch)
    before.backward()
    optimizer.step()
    assert model.loss(model(batch), batch) != before
    assert list(build_predictor(model.eval(), vocabulary).predict([input_of(config)]))


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_its_config_without_elmo(name: str) -> None:
    with_elmo, baseline = (to_json(config_of(each)) for each in (name.replace("baselines/", ""), name))
    assert with_elmo["model"]["embedder"].pop("elmo") is not None
    assert baseline["model"]["embedder"].pop("elmo") is None
    mix_penalties = [one for one in with_elmo["trainer"]["regularizers"] if "mix" in one["parameters"]]
    assert with_elmo["trainer"].pop("regularizers") == baseline["trainer"].pop("regularizers") + mix_penalties
    assert with_elmo == baseline


def test_what_has_no_version_for_cpus_follows_the_rule() -> None:
    """The rule is printed after the list of configs: `packaged.CPU_RULE`."""
    published = [name for name in TASKS if "/" not in name]
    without = [name for name in published if f"cpu/{name}" not in TASKS]
    models = {name: config_of(name).model for name in without}
    taggers = {name.removesuffix(".jsonnet") for name, model in models.items() if isinstance(model, CrfTaggerConfig)}
    names = "chunking_conll00 ner_conll03 ner_ontonotes pos_ewt pos_ud predicates_conll12 predicates_ewt"
    assert taggers == set(names.split())
    rest = {name.removesuffix(".jsonnet") for name in without} - taggers
    assert rest == {"srl_conll05", "srl_conll12", "coref_conll12", "squad_bidaf"}
    for config in ("cpu/srl_ewt.jsonnet", "cpu/coref_ontogum.jsonnet"):
        assert config in TASKS
        assert config.removesuffix(".jsonnet") in CPU_RULE
    assert {name.replace("baselines/", "") for name in BASELINES} == {*TASKS} - {*BASELINES}  # every task has one
