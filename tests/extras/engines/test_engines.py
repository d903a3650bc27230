"""The same rows from Ray and Spark, where they are installed: `make engines`."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elmo_tasks.batches import Embed

# The engines warn about the versions of what they use.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def table() -> pa.Table:
    lines = (f"Line {number} of the text {name}. It rained." for name in "abc" for number in range(60))
    return pa.table({"id": [str(number) for number in range(180)], "text": list(lines)})


def test_ray_data_gives_the_same_rows(table: pa.Table, sample_folder: Path) -> None:
    ray = pytest.importorskip("ray")
    settings: dict[str, Any] = {"bilm": sample_folder / "bilm", "pool": "mean"}
    ray.init("local", include_dashboard=False, logging_level=logging.ERROR)
    try:
        rows = ray.data.from_arrow(table).map_batches(
            Embed,
            fn_constructor_kwargs=settings,
            batch_format="pyarrow",
            batch_size=50,
            compute=ray.data.ActorPoolStrategy(size=2),
            num_cpus=1,
        )
        found = sorted(rows.take_all(), key=lambda row: (int(row["id"]), row["sentence"]))
    finally:
        ray.shutdown()
    for row, other in zip(found, Embed(**settings)(table).to_pylist(), strict=True):
        assert (row["id"], list(row["tokens"])) == (other["id"], other["tokens"])
        assert np.asarray(row["vectors"]) == pytest.approx(np.asarray(other["vectors"]), abs=1e-3)


def test_spark_gives_the_same_rows(
    table: pa.Table, sample_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyspark = pytest.importorskip("pyspark.sql")
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    embed = Embed(bilm=sample_folder / "bilm", pool="mean", number_type="float32")
    pq.write_table(table, tmp_path / "all.parquet")

    schema = from_arrow_schema(embed.schema(table.schema))

    def embed_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from embed(pa.Table.from_batches([batch])).cast(to_arrow_schema(schema)).to_batches()

    spark: Any = pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        rows = spark.read.parquet(str(tmp_path / "all.parquet")).repartition(2)
        found = rows.mapInArrow(embed_batches, schema).collect()
    finally:
        spark.stop()
    expected = embed(table).to_pylist()
    found = sorted((row.asDict() for row in found), key=lambda row: (int(row["id"]), row["sentence"]))
    assert [(row["id"], row["tokens"]) for row in found] == [(row["id"], row["tokens"]) for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert row["vectors"] == pytest.approx(other["vectors"], abs=1e-6)
