"""Parts on a stand-in for Ray; see test_engines.py for Ray itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.integrations.parts import Made, PartsFolder
from elmo_tasks.integrations.ray_engine import process_on_ray, ray_cluster
from elmo_tasks.integrations.units import Unit, find_units
from tests.fake_ray import FakeRay, RayError, use_fake_ray


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    return use_fake_ray(monkeypatch)


@pytest.fixture
def units(tmp_path: Path) -> list[Unit]:
    """Three lines, each a unit."""
    (tmp_path / "a.txt").write_text("Orla left.\nTavo sang.\nIt rained.\n")
    return list(find_units([tmp_path / "a.txt"], tokens=1))


def in_capitals(table: pa.Table) -> pa.Table:
    texts = [text.upper() for text in table["text"].to_pylist()]
    if "FAIL" in texts:
        raise ElmoTasksError("a row is not usable")
    return pa.table({"text": texts, "error": [None if "left" in text else text for text in table["text"].to_pylist()]})


def texts(folder: PartsFolder) -> list[str]:
    return [text for path in sorted(folder.path.glob("*.parquet")) for text in pq.read_table(path)["text"].to_pylist()]


def test_the_missing_parts_are_made(ray: FakeRay, units: list[Unit], tmp_path: Path) -> None:
    folder = PartsFolder(tmp_path / "out", {})
    assert folder.process(units[1:2], in_capitals, visible=False) == Made(1, 1)
    assert process_on_ray(folder, units, in_capitals) == Made(2, 1)
    assert texts(folder) == ["ORLA LEFT.", "TAVO SANG.", "IT RAINED."]
    assert ray.clusters == ["local"]
    assert process_on_ray(folder, units, in_capitals) == Made(0, 0)
    with pytest.raises(ElmoTasksError, match="its parts were made with layers = None; got 'top'"):
        process_on_ray(PartsFolder(folder.path, {"layers": "top"}), units, in_capitals)
    assert ray.clusters == ["local"]  # no other one was started for nothing
    assert not ray.is_running
    assert ray.said == []


@pytest.mark.parametrize(
    ("resources", "settings", "actors", "needs"),
    [
        ({"CPU": 2.0}, {}, 2, (1, None)),
        ({"CPU": 16.0}, {}, 3, (1, None)),  # no more than parts
        ({"CPU": 16.0, "GPU": 2.0}, {"use_gpu": True}, 2, (None, 1)),
        ({"CPU": 16.0}, {"use_gpu": True}, 1, (None, 1)),
        ({"CPU": 2.0}, {"workers": 1}, 1, (1, None)),
    ],
)
def test_as_many_actors_as_there_are_places(
    resources: dict[str, float],
    settings: dict[str, Any],
    actors: int,
    needs: tuple[int | None, int | None],
    ray: FakeRay,
    units: list[Unit],
    tmp_path: Path,
) -> None:
    ray.resources = resources
    assert process_on_ray(PartsFolder(tmp_path / "out", {}), units, in_capitals, **settings) == Made(3, 2)
    assert (ray.actors, ray.needs) == (actors, needs)


@pytest.mark.parametrize("on_ray", [False, True])
def test_the_bar_counts_the_parts(
    on_ray: bool,
    ray: FakeRay,
    units: list[Unit],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    folder = PartsFolder(tmp_path / "out", {})
    folder.process(units[:1], in_capitals, visible=False)
    assert capsys.readouterr().err == ""
    process_on_ray(folder, units, in_capitals) if on_ray else folder.process(units, in_capitals)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if "parts" in line]
    assert " 1/3 " in lines[0]
    assert " 3/3 " in lines[-1]
    assert all("/3 " in line for line in lines)  # no other bar
    assert lines[-1].endswith("a.txt" if on_ray else "a.txt, line 3")


def test_a_cluster_is_joined_where_one_is_given_and_serves_no_page(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in ("head:1", None):
        with ray_cluster(address) as joined:
            assert joined is ray
            assert ray.is_running
            assert not ray.has_page
    monkeypatch.setenv("RAY_ADDRESS", "other:1")
    for address in (None, "head:1"):
        with ray_cluster(address):
            pass
    assert ray.clusters == ["head:1", "local", "other:1", "head:1"]


def test_what_fails_on_a_cluster(ray: FakeRay, units: list[Unit], tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("fail\n")
    with pytest.raises(ElmoTasksError, match=r"^a row is not usable$"):
        process_on_ray(PartsFolder(tmp_path / "out", {}), [*units, *find_units([tmp_path / "b.txt"])], in_capitals)
    assert not ray.is_running
    ray.failure = RayError("the actor died")
    with pytest.raises(ElmoTasksError, match=r"^Ray: the actor died$"):
        process_on_ray(PartsFolder(tmp_path / "other", {}), units, in_capitals)
    ray.missing = {"nowhere:1"}
    with pytest.raises(
        ElmoTasksError, match=r"^--address nowhere:1: no Ray cluster there \(no answer from nowhere:1\)"
    ):
        process_on_ray(PartsFolder(tmp_path / "other", {}), units, in_capitals, address="nowhere:1")
    assert not ray.is_running
