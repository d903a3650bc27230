"""BiLMs that others have published: names and addresses, for `elmo-tasks fetch`. docs/rescue.md is about them."""

from __future__ import annotations

_ALLENNLP = "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo"
_JAPANESE = "https://exawizardsallenlp.blob.core.windows.net/data"


def _english(size: str, sha256: str = "") -> tuple[str, str]:
    start = f"{_ALLENNLP}/{size}/elmo_{size}"
    return f"{start}_options.json", f"{start}_weights.hdf5" + (f"#sha256={sha256}" if sha256 else "")


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
}
"""The options and the weights of each biLM, or its archive."""
