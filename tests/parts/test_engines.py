"""The same parts and rows from Ray and Spark, where they are installed: `make engines`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elmo_tasks import cli
from elmo_tasks.batches import Embed
from elmo_tasks.parts.ray_engine import ray_cluster

# The engines warn about the versions of what they use.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "texts").mkdir()
    for name in "abc":
        lines = (f"Line {number} of the text {name}. It rained.\n" for number in range(60))
        (tmp_path / "texts" / f"{name}.txt").write_text("".join(lines))
    return tmp_path / "texts"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


@pytest.fixture
def command(texts: Path, sample_folder: Path, tmp_path: Path) -> list[str]:
    command = ["embed", str(texts), "--bilm", str(sample_folder / "bilm"), "--part-tokens", "200", "--quiet"]
    assert cli.main([*command, "--output", f"{tmp_path / 'plain'}/"]) == 0
    return command


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ray_makes_the_same_parts(
    workers: str, command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray")
    assert cli.main([*command, "--output", f"{tmp_path / 'ray'}/", "--engine", "ray", "--workers", workers]) == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "plain")
    assert "Execution plan" not in capfd.readouterr().err


def test_ray_serves_no_page() -> None:
    """Anyone who reaches its page can run code on the cluster."""
    pytest.importorskip("ray")
    with ray_cluster(None), socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", 8265)) != 0


@contextlib.contextmanager
def after_the_first_part(folder: Path, action: Callable[[], None]) -> Iterator[None]:
    """Does something once, as soon as the folder has a part, while the block runs."""

    def wait() -> None:
        while not contents(folder):
            time.sleep(0.01)
        action()

    watcher = threading.Thread(target=wait, daemon=True)
    watcher.start()
    yield
    watcher.join(timeout=60)
    assert not watcher.is_alive(), "there was no part"


def test_an_actor_of_ray_that_is_killed_is_replaced(command: list[str], tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    killed = []

    def kill_one() -> None:
        found = subprocess.run(["pgrep", "-f", "ray::MapWorker"], capture_output=True, text=True, check=False)
        for number in found.stdout.split()[:1]:
            os.kill(int(number), signal.SIGKILL)
            killed.append(number)

    with after_the_first_part(tmp_path / "ray", kill_one):
        assert cli.main([*command, "--output", f"{tmp_path / 'ray'}/", "--engine", "ray", "--workers", "2"]) == 0
    assert killed
    assert not ray.is_initialized()
    assert contents(tmp_path / "ray") == contents(tmp_path / "plain")


def test_the_machines_that_are_left_do_the_work_of_one_that_is_killed(command: list[str], tmp_path: Path) -> None:
    """There is one actor for each machine, so that the lost one has no place before the other has ended."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        lost = cluster.add_node(num_cpus=1)
        parts = ["--output", f"{tmp_path / 'ray'}/"]
        with after_the_first_part(tmp_path / "ray", lambda: cluster.remove_node(lost, allow_graceful=False)):
            assert cli.main([*command, *parts, "--engine", "ray", "--address", cluster.address]) == 0
    finally:
        cluster.shutdown()
    assert contents(tmp_path / "ray") == contents(tmp_path / "plain")


def test_ray_says_what_is_wrong(
    command: list[str], texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray")
    (texts / "b.jsonl").write_text('{"txt": "wrong"}\n')
    assert cli.main([*command, "--output", f"{tmp_path / 'ray'}/", "--engine", "ray", "--workers", "1"]) == 2
    assert "b.jsonl:1: the keys are ['txt']; expected either 'text' or 'tokens'" in capsys.readouterr().err


def test_spark_gives_the_same_rows(texts: Path, sample_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = pytest.importorskip("pyspark.sql")
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    embed = Embed(bilm=sample_folder / "bilm", pool="mean", number_type="float32")
    lines = [line for path in sorted(texts.iterdir()) for line in path.read_text().splitlines()]
    table = pa.table({"id": [str(number) for number in range(len(lines))], "text": lines})
    pq.write_table(table, texts / "all.parquet")

    schema = from_arrow_schema(embed.schema(table.schema))

    def embed_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from embed(pa.Table.from_batches([batch])).cast(to_arrow_schema(schema)).to_batches()

    spark: Any = pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        rows = spark.read.parquet(str(texts / "all.parquet")).repartition(2)
        found = rows.mapInArrow(embed_batches, schema).collect()
    finally:
        spark.stop()
    expected = embed(table).to_pylist()
    found = sorted((row.asDict() for row in found), key=lambda row: (int(row["id"]), row["sentence"]))
    assert [(row["id"], row["tokens"]) for row in found] == [(row["id"], row["tokens"]) for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert row["vectors"] == pytest.approx(other["vectors"], abs=1e-6)
