"""BiLMs that are named by the hub or by an address."""

import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import ElmoTasksError, WeightsError, WriteError
from elmo_tasks.extras.weights.foreign_files import fetched
from elmo_tasks.files.downloads import pinned
from tests.fake_hub import FakeHub

Files = tuple[Path, Path]


@pytest.fixture
def named(hub: FakeHub, bilm_files: Files) -> str:
    """The name on the hub of the biLM."""
    hub.add("ann/bilm", bilm_files[0].parent)
    return "hub:ann/bilm"


def test_the_hub(hub: FakeHub, named: str, bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.models["ann/bilm"]["secret.pkl"] = b"?"
    for name in (named, f"{named}@main", f"{named}@{hub.commit('ann/bilm')}"):
        assert BiLM.load(name).fingerprint() == bilm.fingerprint()
    assert not any("secret" in each for each in hub.asked)
    assert pinned(named) == pinned(f"{named}@main") == f"{named}@{hub.commit('ann/bilm')}"
    asked = len(hub.asked)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert BiLMFiles.in_folder(named, local_only=True).weights.is_file()
    assert len(hub.asked) == asked


def test_what_the_hub_does_not_give(hub: FakeHub, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.denied = {"ann/private": (401, "RepoNotFound"), "ann/closed": (403, ""), "ann/gated": (403, "GatedRepo")}
    hub.models["ann/other"] = {"a.txt": b"?"}
    for name, problem in (
        ("hub:ann/none", r"cannot be downloaded from the hub: 404 .*Repository Not Found for url: .*/ann/none"),
        ("hub:ann/private", r"Repository Not Found .* make sure you are authenticated"),
        ("hub:ann/closed", r"403 Forbidden.*/ann/closed/.* Make sure your token has the correct permissions"),
        ("hub:ann/gated", r"Cannot access gated repo for url http://127.0.0.1:\d+/api/models/ann/gated"),
        (f"{named}@old", "Revision Not Found for url: .*/revision/old"),
        ("hub:ann/other", r"has none of the files \*options.json, .*; expected a biLM's options.json"),
        ("hub:ann/a b", "not the name of a model on the hub; expected hub:ORG/NAME"),
    ):
        with pytest.raises(WeightsError, match=problem) as caught:
            BiLMFiles.in_folder(name)
        assert str(caught.value).startswith(f"{name}: ")
        assert "\n" not in str(caught.value)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsError, match="not downloaded to this machine yet, and HF_HUB_OFFLINE is set"):
        BiLMFiles.in_folder(named)
    with pytest.raises(WeightsError, match="not downloaded to this machine yet"):
        BiLMFiles.in_folder(named, local_only=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    hub.shutdown()
    hub.server_close()
    with pytest.raises(WeightsError, match=r"cannot be downloaded from the hub: .+"):
        BiLMFiles.in_folder(named)


@pytest.mark.slow  # the library tries again for some seconds
def test_a_download_from_the_hub_that_ends_early(hub: FakeHub, named: str, bilm: BiLM) -> None:
    hub.shortened = {"weights.hdf5"}
    with pytest.raises(WeightsError, match=r"hub:ann/bilm: cannot be downloaded from the hub: .+"):
        BiLMFiles.in_folder(named)
    hub.shortened = set()
    assert BiLM.load(named).fingerprint() == bilm.fingerprint()


def test_a_full_disk(
    hub: FakeHub,
    named: str,
    bilm_files: Files,
    room: Callable[[int], AbstractContextManager[None]],
) -> None:
    address = hub.add_file(bilm_files[1])
    for name, remedy in ((named, "set HF_HOME to another folder"), (address, "choose another place")):
        with room(10_000), pytest.raises(WriteError, match=f"cannot be written: .*{remedy}"):
            BiLMFiles.in_folder(name)


def test_addresses(hub: FakeHub, bilm: BiLM, bilm_files: Files, tmp_path: Path) -> None:
    options, weights = map(hub.add_file, bilm_files)
    assert BiLM.load(options, weights).fingerprint() == bilm.fingerprint()
    with zipfile.ZipFile(tmp_path / "bilm.zip", "w") as zipped:
        for path in bilm_files:
            zipped.write(path, path.name)
    archive = hub.add_file(tmp_path / "bilm.zip")
    assert BiLM.load(Path(archive)).fingerprint() == bilm.fingerprint()  # a path has one slash for two
    assert len(hub.asked) == 3
    files = BiLMFiles.chosen(None, options, weights, local_only=True)
    assert files.weights.name == "weights.hdf5"
    files.weights.write_bytes(b"damaged")
    assert BiLM.load(options, weights).fingerprint() == bilm.fingerprint()
    assert len(hub.asked) == 4
    assert fetched(archive.partition("#")[0])[1] == archive


def test_addresses_that_are_refused(hub: FakeHub, bilm_files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    address = hub.add_file(bilm_files[1])
    plain = address.partition("#")[0]
    hub.files["cut.zip"] = bytes(1000)
    hub.shortened = {"cut.zip"}
    for name, problem in (
        (plain, r"expected #sha256= and the 64 digits .* `elmo-tasks fetch http://.*weights.hdf5` downloads the file"),
        (f"{plain}#sha256=0", "expected #sha256= and the 64 digits"),
        (f"{plain}#sha256={'0' * 64}", "not the expected file: expected the SHA-256 0{64}, got [0-9a-f]{64}"),
        (f"{hub.address}/files/none.zip#sha256={'0' * 64}", "cannot be downloaded: 404"),
        (f"{hub.address}/files/cut.zip#sha256={'0' * 64}", "ended after 500 of 1,000 bytes; try again"),
        (f"http://127.0.0.1:9/a.zip#sha256={'0' * 64}", "cannot be downloaded: .*refused; check the address"),
    ):
        with pytest.raises(WeightsError, match=problem) as caught:
            BiLMFiles.in_folder(name)
        assert "\n" not in str(caught.value)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsError, match="not downloaded to this machine yet, and HF_HUB_OFFLINE is set"):
        BiLMFiles.in_folder(address)
    with pytest.raises(ElmoTasksError, match="HF_HUB_OFFLINE"):
        fetched(plain)
