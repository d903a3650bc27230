"""Every layout of docs/rescue.md, from tiny weights in files of the published names, and what the page says of them."""

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.compat import ElmoEmbedder
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.extras.weights.commands import PUBLISHED
from tests.fake_hub import FakeHub
from tests.random_bilm import random_bilm

PAGE = Path(__file__).parents[3] / "docs" / "rescue.md"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The folder of a tiny biLM."""
    random_bilm(TINY_OPTIONS, seed=1).save(tmp_path / "bilm" / "options.json", tmp_path / "bilm" / "weights.hdf5")
    return tmp_path / "bilm"


@pytest.mark.parametrize("name", ["original", "japanese", "seqvec", "nlpl"])
def test_a_published_bilm_is_fetched_and_used(
    name: str,
    hub: FakeHub,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    addresses = []
    for address in PUBLISHED.get(name, ("http://vectors.nlpl.eu/repository/20/212.zip",)):
        place = tmp_path / address.partition("#")[0].rpartition("/")[2]
        if place.suffix == ".zip":
            folder, weights = ("", "model.hdf5") if name == "nlpl" else ("uniref50_v2/", "weights.hdf5")
            with zipfile.ZipFile(place, "w") as zipped:
                zipped.write(files / "options.json", f"{folder}options.json")
                zipped.write(files / "weights.hdf5", f"{folder}{weights}")
        else:
            place.write_bytes((files / ("weights.hdf5" if place.suffix == ".hdf5" else "options.json")).read_bytes())
        addresses.append(hub.add_file(place).partition("#")[0])
    monkeypatch.setitem(PUBLISHED, name, tuple(addresses))
    assert cli.main(["fetch", name]) == 0
    named = re.findall(r"--set model\.embedder\.elmo\.(\w+)='(\S+)'", capsys.readouterr().out)
    (tmp_path / "proteins.txt").write_text("SEQWENCE\nMKV\n")
    command = ["embed", str(tmp_path / "proteins.txt"), "--output", str(tmp_path / "vectors.npz")]
    command += ["--tokenizer", '{"type": "regex", "pattern": "[A-Z]"}']
    assert cli.main([*command, *(word for key, value in named for word in (f"--{key}", value))]) == 0
    vectors = np.load(tmp_path / "vectors.npz")
    assert vectors["0"].shape == (3, len("SEQWENCE"), 64)
    (expected,) = elmo_tasks.embed([list("MKV")], bilm=files)
    np.testing.assert_allclose(vectors["1"], expected, atol=2e-6)
    if len(named) == 2:
        found = ElmoEmbedder(*(value for _, value in named)).embed_sentence(list("MKV"))
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_the_page_has_every_other_name() -> None:
    """Those of ELMoForManyLangs are names of languages, which `fetch --list` shows."""
    names = re.findall(r"^\|[^|]*\| `([\w.-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert names == [name for name, (address, *_) in PUBLISHED.items() if "vectors.nlpl.eu" not in address]
    assert PUBLISHED["spanish"] == ("http://vectors.nlpl.eu/repository/11/145.zip",)
    assert PUBLISHED["chinese"] == ("http://vectors.nlpl.eu/repository/11/179.zip",)
