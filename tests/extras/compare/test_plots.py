import json
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.extras.compare import plots
from elmo_tasks.extras.compare.plots import RunCurves, check_format, draw_mixes, plot_runs
from tests.plotted import points


def record(epoch: int, *, best: bool, elmo: bool = True, transformer: bool = False) -> dict[str, Any]:
    mix = {"layers": [0, 2], "weights": [0.125, 0.875], "gamma": 0.5}
    of_transformer = {"layers": [0, 6], "weights": [0.375, 0.625], "gamma": 0.25}
    return {
        "epoch": epoch,
        "training": {"loss": 2 / epoch},
        "validation": {"f1": 60 + 10 * best, "loss": 3 / epoch},
        "elmo": {"input": mix} if elmo else {},
        **({"transformer": of_transformer} if transformer else {}),
        "best": best,
    }


def run(folder: Path, **settings: Any) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"trainer": {"validation_metric": "+f1"}}))
    records = [record(1, best=False, **settings), record(2, best=True, **settings), record(3, best=False, **settings)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return folder


def words(path: Path) -> list[str]:
    """The texts of an SVG picture, which matplotlib writes as comments next to their shapes."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    tree = ElementTree.parse(path, parser)
    return [each.text.strip() for each in tree.iter() if each.tag is ElementTree.Comment and each.text]


def test_a_loss_that_is_not_a_number_is_a_gap(tmp_path: Path) -> None:
    records = run(tmp_path / "ner") / "metrics.jsonl"
    records.write_text(records.read_text().replace('"loss": 3.0', '"loss": null').replace('"f1": 60', '"f1": null'))
    command = ["plot", str(tmp_path / "ner"), "--output", str(tmp_path / "a.svg")]
    assert cli.main(command) == 0
    assert "ner, best: 70.00" in words(tmp_path / "a.svg")
    assert [cli.main(each) for each in (command, [*command, "--force"], [*command[:-1], "a.jpg"])] == [2, 0, 2]


@pytest.mark.parametrize("ending", [".svg", ".pdf"])
def test_names_are_drawn_as_they_are(tmp_path: Path, ending: str) -> None:
    runs = [RunCurves.read(run(tmp_path / name)) for name in ("plain", "$a^{$")]
    plot_runs(tmp_path / f"a{ending}", runs)
    if ending == ".svg":
        shown = {f"{name}, {what}" for name in ("plain", "$a^{$") for what in ("training", "best: 70.00")}
        assert shown <= {*words(tmp_path / "a.svg")}


def test_a_baseline_has_no_layers(tmp_path: Path) -> None:
    plot_runs(tmp_path / "a.PNG", [RunCurves.read(run(tmp_path / "base", elmo=False))])
    content = (tmp_path / "a.PNG").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == (1500, 630)  # pixels


@pytest.mark.parametrize("elmo", [True, False])
def test_the_mix_of_a_transformer_is_drawn_like_elmos(tmp_path: Path, elmo: bool) -> None:
    curves = RunCurves.read(run(tmp_path / "ner", elmo=elmo, transformer=True))
    assert list(curves.mixes()) == ["input"] * elmo + ["transformer"]
    plot_runs(tmp_path / "a.svg", [curves])
    found = words(tmp_path / "a.svg")
    assert {"transformer", "gamma 0.25", "tokens", "layer 6", "0.38", "0.62"} <= {*found}
    assert ("layer 2" in found) == elmo


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    folder = run(tmp_path / "ner")
    with pytest.raises(ElmoTasksError, match=r"a\.jpg: the ending is '\.jpg'; expected \.svg, \.png, \.pdf"):
        check_format("a.jpg")
    (folder / "metrics.jsonl").unlink()
    with pytest.raises(RunError, match=r"ner: no epoch has finished"):
        RunCurves.read(folder)
    (folder / "metrics.jsonl").write_text("{}\n")
    problem = r"metrics.jsonl:1: the key 'training' is missing; expected the record of an epoch"
    with pytest.raises(RunError, match=problem):
        RunCurves.read(folder)
    (folder / "config.json").write_text('{"trainer": {}}')
    with pytest.raises(RunError, match=r"ner: the run of a biLM; expected that of a task model"):
        RunCurves.read(folder)


def test_the_numbers_of_mixes_stand_in_their_cells() -> None:
    axes = Figure().subplots()
    mixes = [{"layers": [0, 1, 2], "weights": weights, "gamma": 1.0} for weights in ([0.1, 0.2, 0.7], [0.3, 0.4, 0.3])]
    draw_mixes(axes, [("one", mixes[0]), ("other", mixes[1])])
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first mix is on top
    assert axes.collections[0].get_clim() == (0, 1)  # alike in all pictures
    assert axes.get_xticks().tolist() == [0, 1, 2]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["tokens", "layer 1", "layer 2"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["one\ngamma 1.00", "other\ngamma 1.00"]
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts == {(0, 0): "0.10", (1, 0): "0.20", (2, 0): "0.70", (0, 1): "0.30", (1, 1): "0.40", (2, 1): "0.30"}
    assert [text.get_position() for text in axes.texts if same_color(text.get_color(), "white")] == [(2, 0)]
    assert {(text.get_horizontalalignment(), text.get_verticalalignment()) for text in axes.texts} == {("center",) * 2}


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved, in their order."""
    saved: list[Figure] = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: saved.append(figure))
    return saved


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_curves_have_a_point_for_each_epoch_and_a_star_at_the_best(tmp_path: Path, figures: list[Figure]) -> None:
    runs = [RunCurves.read(run(tmp_path / name)) for name in ("one", "other")]
    plot_runs("a.svg", runs[:1])
    plot_runs("a.svg", [runs[0], RunCurves("other", "loss", runs[1].records)])
    assert [figure.get_size_inches().tolist() for figure in figures] == [
        pytest.approx([10, 4.2 + 0.8 + 0.5 * mixes]) for mixes in (1, 2)
    ]
    losses, metric, _ = figures[0].axes
    training, validation = losses.lines
    assert points(training) == [[1, 2], [2, 1], [3, 2 / 3]]
    assert points(validation) == [[1, 3], [2, 1.5], [3, 1]]
    assert (legend(losses), losses.get_title(), losses.get_xlabel()) == (["training", "validation"], "loss", "epoch")
    assert same_color(training.get_color(), validation.get_color())
    assert training.get_linestyle() != validation.get_linestyle()
    curve, star = metric.lines
    assert points(curve) == [[1, 60], [2, 70], [3, 60]]
    assert (points(star), star.get_marker()) == ([[2, 70]], "*")
    assert (legend(metric), metric.get_title()) == (["one, best: 70.00"], "validation f1")
    assert all(tick == int(tick) for axes in (losses, metric) for tick in axes.get_xticks())
    losses, metric, _ = figures[1].axes
    assert legend(losses) == [f"{name}, {part}" for name in ("one", "other") for part in ("training", "validation")]
    same = [same_color(losses.lines[0].get_color(), line.get_color()) for line in losses.lines]
    assert same == [True, True, False, False]
    assert [same_color(line.get_color(), color) for line, color in
            zip(metric.lines, ("C0", "C0", "C1", "C1"), strict=True)] == [True] * 4  # fmt: skip
    assert (legend(metric)[1], metric.get_title()) == ("other, best: 1.50", "validation f1, loss")
