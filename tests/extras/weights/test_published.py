"""Every layout of docs/rescue.md, from tiny weights in files of the published names, and what the page says of them."""

import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.compat import Elmo, ElmoEmbedder, batch_to_ids
from elmo_tasks.config import load_config
from elmo_tasks.elmo import TINY_OPTIONS, ElmoConfig
from elmo_tasks.errors import RemoteError
from elmo_tasks.extras.weights.commands import PUBLISHED
from elmo_tasks.extras.weights.foreign_files import fetched
from elmo_tasks.files.downloads import place_of
from tests.fake_hub import FakeHub
from tests.random_bilm import random_bilm

PAGE = Path(__file__).parents[3] / "docs" / "rescue.md"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny biLM; not to be changed."""
    folder = tmp_path_factory.mktemp("bilm")
    random_bilm(TINY_OPTIONS, seed=1).save(folder / "options.json", folder / "weights.hdf5")
    return folder


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
    *paths, in_config, in_command = capsys.readouterr().out.splitlines()
    named = re.findall(r"--set model\.embedder\.elmo\.(\w+)='(\S+)'", in_command)
    assert [Path(path).is_file() for path in paths] == [True, True]
    assert in_config == f"in a config:  elmo: {{ {', '.join(f'{key}: {value!r}' for key, value in named)} }}"
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


HOSTS = ["https://s3-us-west-2.amazonaws.com/allennlp", "https://allennlp.s3.amazonaws.com"]
SIZE = "2x2048_256_2048cnn_1xhighway"


def addresses_of(size: str, host: str) -> list[str]:
    start = f"{host}/models/elmo/{size}/elmo_{size}"
    return [f"{start}_options.json", f"{start}_weights.hdf5"]


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be downloaded, and the cache is empty."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("offline")
def test_allennlp_s_addresses_of_both_hosts_need_no_hash(files: Path) -> None:
    """In scripts and configs. The error says where a file from elsewhere is found; then it works."""
    for name in ("options.json", "weights.hdf5"):
        with pytest.raises(RemoteError) as caught:
            Elmo(addresses_of(SIZE, HOSTS[1])[0], addresses_of(SIZE, HOSTS[1])[1])
        (place,) = re.findall(rf"give the path of elmo_{SIZE}_{name}, or put it into (.+)$", str(caught.value))
        Path(place).mkdir(parents=True)
        shutil.copy(files / name, Path(place) / f"elmo_{SIZE}_{name}")
    expected = elmo_tasks.embed([["First", "sentence"]], bilm=files)[0]
    for host in HOSTS:
        options, weights = addresses_of(SIZE, host)
        elmo = Elmo(options_file=options, weight_file=weights, num_output_representations=1).eval()
        (found,) = elmo(batch_to_ids([["First", "sentence"]]))["elmo_representations"]
        np.testing.assert_allclose(found[0].detach().numpy(), expected.mean(dim=0), atol=2e-6)
        np.testing.assert_allclose(
            ElmoEmbedder(options, weights).embed_sentence(["First", "sentence"]), expected, atol=2e-6
        )
        config = load_config({"options": options, "weights": weights}, ElmoConfig)
        assert config.files().weights.parent == Path(place)
        assert fetched(weights)[1].startswith(f"{addresses_of(SIZE, HOSTS[0])[1]}#sha256=")


@pytest.mark.usefixtures("offline")
def test_a_known_hash_is_checked_and_other_addresses_need_theirs(files: Path) -> None:
    (_, address) = addresses_of("2x1024_128_2048cnn_1xhighway", HOSTS[0])
    place = place_of(address)
    place.parent.mkdir(parents=True)
    shutil.copy(files / "weights.hdf5", place)
    with pytest.raises(RemoteError, match="not downloaded to this machine yet"):
        Elmo(files / "options.json", addresses_of("2x1024_128_2048cnn_1xhighway", HOSTS[1])[1])
    with pytest.raises(RemoteError, match=r"weights_2\.hdf5: expected #sha256= and .* `elmo-tasks fetch https"):
        Elmo(files / "options.json", address.replace("weights", "weights_2"))


def test_the_page_has_every_other_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of ELMoForManyLangs are names of languages, which `fetch --list` shows."""
    assert cli.main(["fetch", "--list"]) == 0
    listed = capsys.readouterr().out
    assert [line for line in listed.splitlines() if line[0] != " "] == [*PUBLISHED]
    assert "\nchinese\n  http://vectors.nlpl.eu/repository/11/179.zip\n" in listed
    small, medium = (addresses_of(size, HOSTS[0]) for size in ("2x1024_128_2048cnn_1xhighway", SIZE))
    assert listed.startswith(f"small\n  {small[0]}\n  {small[1]}#sha256=747b")
    assert f"medium\n  {medium[0]}\n  {medium[1]}\n" in listed
    names = re.findall(r"^\|[^|]*\| `([\w.-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert names == [name for name, (address, *_) in PUBLISHED.items() if "vectors.nlpl.eu" not in address]
