"""The same parts and rows from Ray and Spark, where they are installed: `make engines`."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elmo_tasks import cli
from elmo_tasks.batches import Embed
from elmo_tasks.integrations.ray_engine import ray_cluster

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


def test_ray_makes_the_same_parts(command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    assert cli.main([*command, "--output", f"{tmp_path / 'ray'}/", "--engine", "ray", "--workers", "2"]) == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "plain")
    assert "Execution plan" not in capfd.readouterr().err


def test_ray_serves_no_page() -> None:
    """Anyone who reaches its page can run code on the cluster."""
    pytest.importorskip("ray")
    with ray_cluster(None), socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", 8265)) != 0


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
