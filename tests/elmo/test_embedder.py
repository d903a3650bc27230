import copy
import gc
import re
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
import pytest
import torch

from elmo_tasks.elmo import BiLM, ElmoConfig
from elmo_tasks.elmo import embedder as embedder_module
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.fast import load_frozen, products
from elmo_tasks.errors import ConfigError, ElmoTasksError
from elmo_tasks.modules.dropout import Dropout, VariationalDropout, dropout_factors

Files = tuple[Path, Path]


def _config(files: Files, **settings: Any) -> ElmoConfig:
    return ElmoConfig(options=str(files[0]), weights=str(files[1]), **settings)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test before these has stored layers, which have half precision."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "own_cache"))


def test_defaults(bilm: BiLM, bilm_files: Files, sentences: list[list[str]]) -> None:
    embedder = _config(bilm_files).build().eval()
    assert embedder.output_size == 12
    mixes = embedder(sentences)
    assert set(mixes) == {"input"}
    expected = bilm.layers(sentences).layers.mean(dim=1)
    torch.testing.assert_close(mixes["input"], expected, rtol=0, atol=1e-5)
    assert embedder.dropout.probability == 0.5
    assert {name for name, value in embedder.named_parameters() if value.requires_grad} == {
        "mixes.input.weights",
        "mixes.input.gamma",
    }


def test_two_mixes_of_one_run(bilm_files: Files) -> None:
    embedder = _config(bilm_files, mixes=("input", "output"), dropout=0.0).build()
    embedder.get_parameter("mixes.output.gamma").data.fill_(2.0)
    mixes = embedder([["one", "two"]])
    torch.testing.assert_close(mixes["output"], 2 * mixes["input"])
    mixes["output"].sum().backward()
    assert embedder.mixes["output"].weights.grad is not None
    assert embedder.mixes["input"].weights.grad is None


def test_fixed_weights_of_some_layers(bilm: BiLM, bilm_files: Files) -> None:
    config = _config(bilm_files, layers=(0, 2), layer_weights=(3.0, 1.0), gamma=0.5, learned_gamma=False, dropout=0.0)
    embedder = config.build()
    assert not any(parameter.requires_grad for parameter in embedder.parameters())
    layers = bilm.layers([["one", "two"]]).layers
    torch.testing.assert_close(embedder([["one", "two"]])["input"], 0.5 * (0.75 * layers[:, 0] + 0.25 * layers[:, 2]))


def test_layers_are_normalized_as_the_config_wants(bilm: BiLM, bilm_files: Files, sentences: list[list[str]]) -> None:
    embedder = _config(bilm_files, layer_normalization="token", layer_cache=None, dropout=0.0).build()
    output = bilm.layers(sentences)
    expected = torch.nn.functional.layer_norm(output.layers, (12,), eps=1e-12).mean(dim=1)
    found = embedder(sentences)["input"]
    torch.testing.assert_close(found[output.mask], expected[output.mask], rtol=0, atol=1e-4)


@pytest.mark.parametrize("stateful", [False, True])
def test_the_heads_precision_is_not_that_of_the_bilm(
    bilm_files: Files, sentences: list[list[str]], stateful: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def layers() -> torch.Tensor:
        embedder = _config(bilm_files, layer_cache=None, stateful=stateful, dropout=0.0).build()
        found: list[torch.Tensor] = []
        embedder.mixes["input"].register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
        embedder(sentences)
        return found[0]

    products._works.cache_clear()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = layers()
    assert torch.equal(under_autocast, layers())
    assert not caplog.records


def test_a_trained_bilm_that_is_loaded_takes_the_fast_path_in_the_precision_of_the_config(
    bilm_files: Files, sentences: list[list[str]]
) -> None:
    trained = _config(bilm_files, requires_grad=True).build().eval()
    assert trained.bilm is not None
    with torch.no_grad():
        for parameter in trained.bilm.parameters():
            parameter.mul_(0.9)
    expected = trained(sentences)["input"]
    for precision, close in (("float32", 1e-5), ("bfloat16", 0.05)):
        bilm_files[1].with_name("gone.hdf5").unlink(missing_ok=True)
        files = (bilm_files[0], bilm_files[1].with_name("gone.hdf5"))
        loaded = _config(files, requires_grad=True, precision=precision).build(pretrained=False).eval()
        loaded.load_state_dict(trained.state_dict())
        torch.testing.assert_close(loaded(sentences)["input"], expected, rtol=0, atol=close)
        assert loaded.bilm is not None
        assert not loaded.bilm.directions[0].layers[0].bias.requires_grad
        copied = copy.deepcopy(loaded)
        loaded.load_state_dict(_config(bilm_files, requires_grad=True).build().state_dict())  # before the training
        assert not torch.allclose(loaded(sentences)["input"], expected, rtol=0, atol=0.01)
        torch.testing.assert_close(copied(sentences)["input"], expected, rtol=0, atol=close)


def test_stateful(bilm_files: Files) -> None:
    embedder = _config(bilm_files, stateful=True, dropout=0.0).build()
    embedder.prepare([["one"]])  # the same sentence has other vectors each time
    assert not torch.equal(embedder([["one"]])["input"], embedder([["one"]])["input"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mixes": ("input", "input")}, "expected each place once"),
        ({"layers": (1, 1)}, "expected each layer once"),
        ({"layers": (0, 1), "layer_weights": (1.0,)}, "one for each of the layers"),
        (
            {"requires_grad": True, "layer_cache": {}},
            r"layer_cache: .* trained change \(requires_grad\); expected null",
        ),
        ({"requires_grad": True, "stateful": True}, "stateful: no state can be carried while .*; expected false"),
        ({"mix": {"type": "gated"}}, r"mix\n  Input should be None"),
        ({"layers": (3,)}, "got 3; .* has 0 to 2"),
        ({"layer_weights": (1.0, 1.0)}, "layer_weights: got 2; expected 3"),
    ],
)
def test_impossible_settings(bilm_files: Files, settings: dict[str, Any], message: str) -> None:
    with pytest.raises((pydantic.ValidationError, ConfigError), match=message):  # the config's, or with this biLM
        _config(bilm_files, **settings).build()


def test_the_bilm_is_loaded_frozen_and_only_where_the_cache_lacks_a_sentence(
    bilm_files: Files, sentences: list[list[str]], monkeypatch: pytest.MonkeyPatch, terminal: Callable[[], str]
) -> None:
    cached, computed = _config(bilm_files).build().eval(), _config(bilm_files, layer_cache=None).build().eval()
    cached.prepare(sentences)
    assert re.search(r"frozen layers +\S* +21/21 .*tokens", terminal())
    computed.prepare(sentences)  # without a cache there is nothing to prepare
    assert terminal() == ""
    expected = computed(sentences)["input"]
    assert not any("bilm" in name for name in cached.state_dict())

    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("the biLM was loaded")

    fresh = _config(bilm_files).build().eval()
    monkeypatch.setattr(embedder_module, "load_frozen", refuse)
    torch.testing.assert_close(fresh(sentences)["input"], expected, rtol=1e-3, atol=1e-3)  # half precision
    with pytest.raises(AssertionError, match="was loaded"):
        fresh([["never", "seen"]])


@pytest.mark.parametrize("settings", [{}, {"layer_cache": None}])
def test_can_be_copied_after_use(bilm_files: Files, sentences: list[list[str]], settings: dict[str, Any]) -> None:
    embedder = _config(bilm_files, **settings).build().eval()
    expected = embedder(sentences)["input"]
    torch.testing.assert_close(copy.deepcopy(embedder)(sentences)["input"], expected)


def test_models_share_a_frozen_bilm(bilm_files: Files, tmp_path: Path) -> None:
    copies = BiLMFiles(*(Path(shutil.copy(path, tmp_path / f"copied_{path.name}")) for path in bilm_files))
    embedders = [_config(files, layer_cache=None).build() for files in (bilm_files, (copies.options, copies.weights))]
    sources = {id(embedder.provider.network(torch.device("cpu"))) for embedder in embedders}
    bilm = load_frozen(copies)
    assert sources == {id(bilm)}
    assert load_frozen(copies, device=torch.device("cpu", 0)) is bilm  # another name of the same device
    assert load_frozen(copies, "bfloat16") is not bilm
    with pytest.raises(ElmoTasksError, match="precision: got 'fp16'; expected float32, bfloat16 or int8"):
        load_frozen(copies, "fp16")  # type: ignore[arg-type]
    gone = weakref.ref(bilm)
    del bilm, embedders
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "named", [{}, {"bilm": "a", "options": "b", "weights": "c"}, {"options": "b"}, {"bilm": "a", "weights": "c"}]
)
def test_one_way_to_name_the_bilm(named: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError, match="either 'bilm' or both"):
        ElmoConfig(**named)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_drops_values_independently_and_keeps_the_mean(probability: float) -> None:
    torch.manual_seed(2)
    factors = dropout_factors((301, 333), probability, torch.empty(0))
    dropped = factors == 0
    torch.testing.assert_close(factors[~dropped], torch.full_like(factors[~dropped], 1 / (1 - probability)))
    # 0.01 is more than six standard deviations, also of the joint frequencies of neighbours
    assert dropped.float().mean().item() == pytest.approx(probability, abs=0.01)
    for one, other in [(dropped[1:], dropped[:-1]), (dropped[:, 1:], dropped[:, :-1])]:
        assert (one & other).float().mean().item() == pytest.approx(probability**2, abs=0.01)


def test_draws_one_value_and_another_type() -> None:
    assert dropout_factors((1,), 0.0, torch.empty(0)).tolist() == [1.0]
    assert dropout_factors((3, 0, 5), 0.5, torch.empty(0)).shape == (3, 0, 5)
    assert dropout_factors((2, 3), 0.5, torch.empty(0, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_a_probability_next_to_one_drops_nearly_all() -> None:
    assert dropout_factors((1000,), 1 - 1e-12, torch.empty(0)).count_nonzero() == 0


def test_gradient_goes_the_way_of_the_values() -> None:
    inputs = torch.full((50, 20), 3.0, requires_grad=True)
    outputs = Dropout(0.5)(inputs)
    assert set(outputs.unique().tolist()) == {0.0, 6.0}
    outputs.sum().backward()
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad * 3, outputs)


@pytest.mark.parametrize("kind", [Dropout, VariationalDropout])
def test_follows_the_seed_and_rests_in_evaluation(kind: type[Dropout]) -> None:
    dropout, inputs = kind(0.5), torch.ones(3, 4, 20)
    torch.manual_seed(1)
    first = dropout(inputs)
    assert not torch.equal(dropout(inputs), first)
    torch.manual_seed(1)
    assert torch.equal(dropout(inputs), first)
    assert torch.equal(dropout.eval()(inputs), inputs)
    assert torch.equal(kind(0.0)(inputs), inputs)


@pytest.mark.parametrize("kind", [Dropout, VariationalDropout])
@pytest.mark.parametrize("probability", [-0.1, 1.0])
def test_refuses_what_is_not_a_probability(kind: type[Dropout], probability: float) -> None:
    with pytest.raises(ValueError, match="expected at least 0 and less than 1"):
        kind(probability)
