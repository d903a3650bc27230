"""The command that downloads biLMs that others have published, by name or address. docs/rescue.md is about them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError, did_you_mean

if TYPE_CHECKING:
    from elmo_tasks.elmo.bilm_files import BiLMFiles

_ALLENNLP = "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo"
_LATER_HOST = "https://allennlp.s3.amazonaws.com/models/elmo"
_JAPANESE = "https://exawizardsallenlp.blob.core.windows.net/data"


def _english(size: str, sha256: str = "") -> tuple[str, str]:
    start = f"{_ALLENNLP}/{size}/elmo_{size}"
    return f"{start}_options.json", f"{start}_weights.hdf5" + (f"#sha256={sha256}" if sha256 else "")


# Che et al. (2018), by the numbers of their files from 136 on. Others have published biLMs of some of these, too.
_MANY_LANGS = (
    "arabic", "bulgarian", "catalan", "czech", "old-church-slavonic", "danish", "german", "greek",
    "english-many-langs", "spanish", "estonian", "basque", "persian", "finnish", "french", "irish", "galician",
    "ancient-greek", "hebrew", "hindi", "croatian", "hungarian", "indonesian", "italian", "japanese-many-langs",
    "korean", "latin", "latvian", "dutch", "norwegian-bokmaal", "norwegian-nynorsk", "polish",
    "portuguese-many-langs", "romanian", "russian", "slovak", "slovene", "swedish", "turkish", "uyghur", "ukrainian",
    "urdu", "vietnamese", "chinese",
)  # fmt: skip

# Peters et al. (2018) and AllenNLP's page of contributed models; SeqVec: Heinzinger et al. (2019). The publishers name
# no hashes: those here are of public copies, whose sizes are as expected.
PUBLISHED: dict[str, tuple[str, ...]] = {
    "small": _english(
        "2x1024_128_2048cnn_1xhighway", "747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229"
    ),
    "medium": _english("2x2048_256_2048cnn_1xhighway"),
    "original": _english(
        "2x4096_512_2048cnn_2xhighway", "a6b92b9ccbb13fe489faacd2221c795d4bebe84b75f8aded9d85ea464fa5c994"
    ),
    "original-5.5b": _english("2x4096_512_2048cnn_2xhighway_5.5B"),
    "pubmed": (
        f"{_ALLENNLP}/contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_options.json",
        f"{_ALLENNLP}/contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_weights_PubMed_only.hdf5",
    ),
    "portuguese": (
        f"{_ALLENNLP}/contributed/pt/wikipedia/options.json",
        f"{_ALLENNLP}/contributed/pt/wikipedia/elmo_pt_weights.hdf5",
    ),
    "portuguese-brwac": (
        f"{_ALLENNLP}/contributed/pt/brwac/options.json",
        f"{_ALLENNLP}/contributed/pt/brwac/elmo_pt_weights_dgx1.hdf5",
    ),
    "japanese": (f"{_JAPANESE}/options.json", f"{_JAPANESE}/weights.hdf5"),
    "seqvec": ("https://rostlab.org/~deepppi/seqvec.zip",),
    **{name: (f"http://vectors.nlpl.eu/repository/11/{at}.zip",) for at, name in enumerate(_MANY_LANGS, start=136)},
}
"""The options and the weights of each biLM, or its archive."""


def published_file(address: str) -> tuple[str, str | None] | None:
    """The address, also of AllenNLP's later host, of a file of `PUBLISHED`, and its hash; see the hook of this name."""
    files = (each.partition("#sha256=") for addresses in PUBLISHED.values() for each in addresses)
    known = {file: sha256 or None for file, _, sha256 in files}
    address = address.replace(_LATER_HOST, _ALLENNLP)
    return (address, known[address]) if address in known else None


def add_fetch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="a published biLM, hub:ORG/NAME, the address of a zip archive, or the addresses of an options.json and of "
        "weights, in this order",
    )
    options.add_flag(parser, "--list", "list the names of published biLMs with their addresses")


def run_fetch(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo.options import BiLMOptions

    if arguments.list:
        for name, addresses in PUBLISHED.items():
            print(name, *addresses, sep="\n  ")
        return
    files, chosen = _fetched(PUBLISHED.get(" ".join(arguments.names), tuple(arguments.names)))
    BiLMOptions.load(files.options)  # raises an error if it is something else
    print(*files.paths.values(), sep="\n")
    print(f"in a config:  elmo: {{ {', '.join(f'{key}: {value!r}' for key, value in chosen.items())} }}")
    print("in a command:", *(f"--set model.embedder.elmo.{key}='{value}'" for key, value in chosen.items()))


def _fetched(names: tuple[str, ...]) -> tuple[BiLMFiles, dict[str, str]]:
    """The files of a biLM, and what the keys of a config are for it."""
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.extras.weights.foreign_files import fetched
    from elmo_tasks.files.downloads import HUB, is_address, pinned

    if len(names) == 1 and names[0].startswith(HUB):
        return BiLMFiles.in_folder(names[0]), {"bilm": pinned(names[0])}
    if not names or len(names) > 2 or not all(map(is_address, names)):
        hint = did_you_mean(names[0], list(PUBLISHED)) if names else ""
        raise ElmoTasksError(
            f"{' '.join(names) or 'no name'}: expected a name that --list shows, such as original or spanish, "
            f"{HUB}ORG/NAME, or one or two addresses that begin with https://.{hint}"
        )
    hashed = [fetched(name)[1] for name in names]
    if len(hashed) == 1:
        return BiLMFiles.in_folder(hashed[0]), {"bilm": hashed[0]}
    return BiLMFiles.chosen(None, *hashed), dict(zip(("options", "weights"), hashed, strict=True))
