"""The columns of CoNLL-2012, for every task that is annotated in them.

Sources: Pradhan et al. (2012), "CoNLL-2012 Shared Task: Modeling Multilingual Unrestricted Coreference in OntoNotes";
Pradhan et al. (2013), "Towards Robust Linguistic Analysis Using OntoNotes", section 4.2, for named entities. A document
is between `#begin document (NAME); part NNN` and `#end document`. Columns are separated by whitespace:

| column | what |
|---|---|
| 1, 2, 3 | the document's name, its part, the token's number in the sentence: not kept |
| 4, 5, 6 | word, part of speech and piece of the bracketed parse (not kept) |
| 7, 8, 9 | lemma, frameset and word sense (not kept), `-` if there is none; a token with a frameset is a predicate |
| 10 | speaker or author, `-` if not known |
| 11 | named entities, as bracketed spans |
| 12 to the last but one | one for each predicate, in their order: its semantic roles, as bracketed spans |
| last | coreference: numbers of clusters in brackets, `|` between several, `-` where none begins or ends |

LitBank has the same columns, with `_` for what is not known and an empty last cell for `-`.

The reader of coreference is here, that of semantic roles in `srl`, and that of names in an extra.

In the coreference column, `(5` begins a mention of cluster 5, `5)` ends one, and `(5)` is a mention of one token.
Several without `|`, as in the test files of the reference scorer, are read too. An end closes the mention of its
cluster that began last. Hence mentions of the same cluster may be nested, but not cross, as [0, 2] and [1, 3] do; those
of different clusters may. The column is read as the reference scorer v8.01 reads it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.data_readers.columns import read_rows
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Parsing, without_copies
from elmo_tasks.errors import DataError
from elmo_tasks.files.paths import is_clutter, plain_name, refuse_stream, stored_file
from elmo_tasks.tasks import Coreference, Task
from elmo_tasks.text.tag_schemes import Span

logger = logging.getLogger(__name__)

_COLUMNS = 12  # except those of the roles
_HIDDEN_WORD = "[WORD]"  # in the skeletons of releases whose text has another licence
_SKELETON = (
    f"{_HIDDEN_WORD} stands for each word: the file is a skeleton; expected the file that the script of the release "
    "makes of it and of the treebank"
)
_NONE = ("-", "_", "")  # cells without a value; OntoNotes has the first, LitBank the others
_EXPECTED_HEADER = "'#begin document (NAME); part NNN'"
_HEADER = re.compile(r"#begin document \((?P<name>.*)\)(?:; part (?P<part>\d{1,9}))?;?\s*")
_SPAN_CELL = re.compile(r"(?:\((?P<label>[^()*]+)(?:\*|(?=\)))|\*)(?P<close>\))?")
NO_BRACKETS = "-"
# Brackets of a cell are read in the order of these groups; their order in the cell has no meaning.
_BRACKET = re.compile(r"(?P<single>\([0-9]+\))|(?P<begin>\([0-9]+)|(?P<end>[0-9]+\))")
_CELL = re.compile(r"(?:\([0-9]+\)?|[0-9]+\))(?:\|?(?:\([0-9]+\)?|[0-9]+\)))*")


class Conll2012Sentence(NamedTuple):
    """A sentence, column by column: every column has one cell for each token, as written.

    `first_line` is the line of the first token in the file; the others follow without a gap. `predicates` are the
    indices of the tokens that have a frameset: OntoNotes gives a lemma to every token with a word sense.
    """

    first_line: int
    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    predicates: tuple[int, ...]
    speakers: tuple[str, ...]
    entities: tuple[str, ...]
    roles: tuple[tuple[str, ...], ...]  # (predicates, tokens)
    coreference: tuple[str, ...]  # a cell may open and close several clusters


class Conll2012Document(NamedTuple):
    """One part of a document. It may have no sentence.

    `name` contains the part, for example `bc/cctv/00/cctv_0000; part 000`; in OntoNotes the genre is what precedes the
    first slash. `fault` is what is wrong with its first or last line; `bad_sentences` are the errors of sentences that
    are left out. The reader raises or skips them.
    """

    path: Path
    name: str
    sentences: list[Conll2012Sentence]
    bad_sentences: list[DataError]
    fault: DataError | None


def conll2012_files(path: Path) -> list[Path]:
    """The files of a path: a file itself, see `stored_file`; of a folder, all below it, in the order of their names.

    In a folder, names end in `_conll` or `.conll`, before the ending of a compressed file (see `without_copies`).
    Official folders have each document twice, annotated by hand (`*gold_conll`) and by machine: then only those by hand
    are read.

    Raises:
        DataError: there is neither such a file nor such a folder, or the folder has no file with such a name.
    """
    if (file := stored_file(path)).is_file():
        return [file]
    refuse_stream(path)
    if not path.is_dir():
        raise MissingDataError(path, "no such file or folder")
    found = (file for file in path.rglob("*") if not is_clutter(file.relative_to(path)))
    named = without_copies(file for file in found if plain_name(file).endswith(("_conll", ".conll")) and file.is_file())
    if not named:
        raise DataError(path, "the folder has no file whose name ends in _conll or .conll, compressed or not")
    gold = [file for file in named if plain_name(file).endswith("gold_conll")]
    if gold and len(gold) < len(named):
        logger.info("%s: %d of %d files are read, those named *gold_conll", path, len(gold), len(named))
    return gold or named


def read_conll2012(path: Path) -> Iterator[Conll2012Document]:
    """Parses the documents of a file, compressed or not, or of all files of a folder (see `conll2012_files`).

    Raises:
        DataError: a file is missing, damaged or not UTF-8. What is wrong with a document or sentence is in the results:
            a line with too few columns, or not with as many as the first of its sentence; a token outside of a
            document; a document that is opened wrongly or never closed. File and line are named.
    """
    for file in conll2012_files(path):
        yield from _documents(file)


def faultless_documents(path: Path, parsing: Parsing) -> Iterator[Conll2012Document]:
    """The documents of `read_conll2012` that have no fault; adds what is wrong with others and with sentences."""
    for document in read_conll2012(path):
        for error in document.bad_sentences:
            parsing.add(error)
        if document.fault:
            parsing.add(document.fault)
        else:
            yield document


def _documents(file: Path) -> Iterator[Conll2012Document]:
    bad_sentences = Parsing(skip=True)
    name, begin = "", 0  # of the open document; line 0: none is open
    sentences: list[Conll2012Sentence] = []
    fault: DataError | None = None
    for number, rows in read_rows(file, _COLUMNS, bad_sentences, borders=("#begin", "#end"), filler="_", needed=(3,)):
        border = rows[0][0] if rows and len(rows[0]) == 1 else ""
        if not border:
            sentences += [_sentence(rows, number)] if rows else []
            if rows and all(word == _HIDDEN_WORD for word in sentences[-1].words):
                fault = fault or DataError(file, _SKELETON, number)
            if not begin:
                begin = number
                fault = DataError(file, f"a token outside of a document; expected {_EXPECTED_HEADER} first", number)
            continue
        begins = border.startswith("#begin")
        if not begins and not begin:
            fault = DataError(file, "a document ends where none is open", number)
        elif begins and begin:
            fault = fault or DataError(file, f"a document begins inside the one of line {begin}", number)
        if begin or fault:
            yield Conll2012Document(file, name, sentences, bad_sentences.skipped, fault)
            bad_sentences.skipped = []
        name, begin, sentences, fault = "", number if begins else 0, [], None
        if begins and (header := _HEADER.fullmatch(border)):
            name = f"{header['name']}; part {int(header['part'] or 0):03}"
        elif begins:
            fault = DataError(file, f"{border[:80]!r}; expected {_EXPECTED_HEADER}", number)
    if begin:
        fault = fault or DataError(file, f"the document {name!r} is never closed; expected '#end document'", begin)
        yield Conll2012Document(file, name, sentences, bad_sentences.skipped, fault)


def bracketed_spans(cells: Sequence[str], path: Path, first_line: int) -> list[Span]:
    """The labelled spans of a column of roles or named entities.

    `(ARG0*` opens a span, `*)` closes it, `(V*)` and `(GPE)` do both.

    Raises:
        DataError: a cell has another form, a span opens inside another, or brackets are not balanced. The line is
            counted from `first_line`, that of the first cell.
    """
    spans = []
    label: str | None = None
    start = 0
    for index, cell in enumerate(cells):
        if cell == "*":  # most are, and each column is as long as its sentence
            continue
        line = first_line + index
        if not (match := _SPAN_CELL.fullmatch(cell)):
            raise DataError(path, f"{cell!r} in a column of spans; expected *, (LABEL*, *), (LABEL*) or (LABEL)", line)
        if match["label"] is not None:
            if label is not None:
                raise DataError(path, f"{cell!r} opens a span inside the span ({label}* of token {start}", line)
            label, start = match["label"], index
        if match["close"] is not None:
            if label is None:
                raise DataError(path, f"{cell!r} closes a span, but none is open", line)
            spans.append(Span(label, start, index))
            label = None
    if label is not None:
        raise DataError(path, f"the span ({label}* is never closed in its sentence", first_line + start)
    return spans


def _sentence(rows: list[list[str]], first_line: int) -> Conll2012Sentence:
    columns = list(zip(*rows, strict=True))
    predicates = tuple(index for index, frameset in enumerate(columns[7]) if frameset not in _NONE)
    speakers = tuple("-" if speaker in _NONE else speaker for speaker in columns[9])
    roles, coreference = tuple(columns[11:-1]), columns[-1]
    return Conll2012Sentence(first_line, columns[3], columns[6], predicates, speakers, columns[10], roles, coreference)


class CoreferenceConll2012Config(DatasetReaderConfig):
    """Coreference from the columns of CoNLL-2012: OntoNotes, OntoGUM, LitBank, and others in the same form."""

    type: Literal["coref_conll2012"] = "coref_conll2012"
    task: ClassVar[Task] = Coreference()

    def build(self) -> CoreferenceConll2012Reader:
        return CoreferenceConll2012Reader(self)


class CoreferenceConll2012Reader(DatasetReader):
    """Makes an example of `Coreference` from each document of a file or of all files of a folder.

    - `document` is the name and part as the file has them: `bc/cctv/00/cctv_0000; part 000`.
    - `genre` is what precedes the first slash of the name, None without one.
    - `clusters` are as annotated, not merged or filtered.

    Documents without tokens are left out.
    """

    def files(self, path: Path) -> Sequence[Path]:
        return conll2012_files(path)

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        files = {file: number for number, file in enumerate(self.files(path))}
        for document in read_conll2012(path):
            with parsing.caught():
                for error in (*document.bad_sentences, document.fault):
                    if error:
                        raise error
                if not document.sentences:
                    parsing.left_out["document(s) without any token"] += 1
                    continue
                lines = [line for each in document.sentences for line in enumerate(each.coreference, each.first_line)]
                genre, slash, _ = document.name.partition("/")
                yield {
                    "document": document.name,
                    "genre": (genre or None) if slash else None,
                    "sentences": [list(sentence.words) for sentence in document.sentences],
                    "speakers": [list(sentence.speakers) for sentence in document.sentences],
                    "clusters": parse_coreference_column(lines, document.path),
                    "file": files[document.path],
                    "line": document.sentences[0].first_line,
                }


def parse_coreference_column(cells: Iterable[tuple[int, str]], path: str | Path) -> list[list[list[int]]]:
    """The clusters of one document.

    Arguments:
        cells: for each token of the document the number of its line in the file and its cell.
        path: the file, for errors.

    Returns:
        Clusters in the order of their first brackets, each a list of mentions `[first token, last token]` from left to
        right: token offsets in the document, ends inclusive. A mention may be in two clusters.

    Raises:
        DataError: a cell is malformed; a mention ends that was not begun, or is begun and never ends.
    """
    clusters: dict[str, list[list[int]]] = {}
    begun: dict[str, list[tuple[int, int]]] = {}  # by cluster, innermost last: (first token, line)
    for token, (line, cell) in enumerate(cells):
        if cell in (NO_BRACKETS, ""):
            continue
        if not _CELL.fullmatch(cell):
            expected = f"{NO_BRACKETS!r}, or '(N', 'N)' or '(N)' joined by '|'"
            raise DataError(path, f"{cell!r} is not a coreference cell; expected {expected}", line)
        for match in sorted(_BRACKET.finditer(cell), key=lambda match: match.lastindex or 0):
            kind, cluster = match.lastgroup, match.group().strip("()")
            mentions = clusters.setdefault(cluster, [])
            if kind == "single":
                mentions.append([token, token])
            elif kind == "begin":
                begun.setdefault(cluster, []).append((token, line))
            elif begun.get(cluster):
                start, _ = begun[cluster].pop()
                mentions.append([start, token])
            else:
                raise DataError(path, f"a mention of cluster {cluster} ends here but does not begin: {cell!r}", line)
    still_open = [(start, line, cluster) for cluster, starts in begun.items() for start, line in starts]
    if still_open:
        _, line, cluster = min(still_open)
        raise DataError(path, f"a mention of cluster {cluster} begins here but does not end in its document", line)
    return [sorted(mentions) for mentions in clusters.values()]
