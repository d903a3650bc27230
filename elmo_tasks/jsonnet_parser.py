"""Jsonnet's grammar, read for literal structure alone: which keys are written where.

Objects, arrays, `local` variables, sums and imports are followed. What would have to be computed (calls, conditions,
comprehensions) stays opaque; the objects written inside it are *loose*: their place in the whole is unknown.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from typing import Any

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/ )
  | (?P<block> \|\|\|-?[ \t\r]*\n (?:[ \t\r]*\n)* (?P<indent>[ \t]+)[^\n]*\n
               (?: (?P=indent)[^\n]*\n | [ \t\r]*\n )* [ \t]*\|\|\| )
  | (?P<verbatim> @"(?:[^"]|"")*" | @'(?:[^']|'')*' )
  | (?P<string> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
  | (?P<number> \d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)? )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
# fmt: off
JSONNET_KEYWORDS = frozenset({
    "assert", "else", "error", "false", "for", "function", "if", "import", "importbin", "importstr", "in", "local",
    "null", "self", "super", "tailstrict", "then", "true",
})
# fmt: on
_CONSTANTS = {"true": True, "false": False, "null": None}
_OPERATORS = frozenset("+-*/%&|^<>=!")
UNKNOWN = object()


class Unreadable(Exception):
    """The text does not follow the grammar as it is known here."""


@dataclasses.dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


@dataclasses.dataclass(frozen=True)
class Entry:
    """A key of an object or an element of an array, with its place."""

    place: str
    value: Node
    adds: bool = False  # written `key+:`
    certain: bool = True  # False where something opaque may have replaced it


@dataclasses.dataclass(frozen=True)
class Node:
    """What is known of an expression: an object's fields, an array's items, a value, a reference, or nothing."""

    fields: dict[str, Entry] | None = None
    items: tuple[Entry, ...] | None = None
    literal: Any = UNKNOWN
    reference: tuple[int, tuple[str, ...]] | None = None  # `self.a` or `$.a`: so many levels up, and then these keys


OPAQUE = Node()


def _doubted(node: Node) -> Node:
    if node.fields is None:
        return node
    return Node(fields={key: dataclasses.replace(entry, certain=False) for key, entry in node.fields.items()})


def _sum(left: Node, right: Node) -> Node:
    """`left + right`, by Jsonnet's rules for objects and arrays."""
    if right.fields is not None:
        fields = dict(left.fields or {})
        for key, entry in right.fields.items():
            if entry.adds and (old := fields.get(key)) is not None:
                base = old.value if old.certain else _doubted(old.value)
                entry = dataclasses.replace(entry, value=_sum(base, entry.value), adds=old.adds)
            fields[key] = entry
        return Node(fields=fields)
    if left.items is not None:
        return Node(items=left.items + (right.items or ()))
    return _doubted(left) if left.fields is not None else OPAQUE


@dataclasses.dataclass
class _Local:
    node: Node
    used: bool = False


_Scope = dict[str, _Local]


class Parser:
    """Reads one file's expressions by Jsonnet's grammar, without operator precedence, which structure does not need.

    Arguments:
        text: the file's text.
        path: the file's name, as messages show it.
        load: gives the structure of another file, for imports.
    """

    def __init__(self, text: str, path: str, load: Callable[[str], Node]) -> None:
        self.path = path
        self.loose: list[Node] = []
        self._load = load
        self._tokens = _tokens(text)
        self._position = 0
        self._locals: list[_Local] = []
        self._open = ""  # the brackets of the literals around the current position

    def document(self) -> Node:
        node = self._expression({})
        if self._token.kind != "end":
            raise Unreadable
        self.loose += [local.node for local in self._locals if not local.used]
        return node

    @property
    def _token(self) -> _Token:
        return self._tokens[self._position]

    def _next(self) -> _Token:
        token = self._token
        if token.kind == "end":
            raise Unreadable
        self._position += 1
        return token

    def _take(self, *texts: str) -> bool:
        """Passes over the next token if it is one of these names or signs."""
        if self._token.kind in ("name", "sign") and self._token.text in texts:
            self._position += 1
            return True
        return False

    def _expect(self, *texts: str) -> None:
        if not self._take(*texts):
            raise Unreadable

    def _place(self) -> str:
        return f"{self.path}:{self._token.line}"

    def _expression(self, scope: _Scope) -> Node:
        node = self._operand(scope)
        while operator := self._operator():
            right = self._operand(scope)
            if operator == "+" and not (node is OPAQUE and right.items is not None):
                node = _sum(node, right)
            else:
                self.loose += [node, right]
                node = OPAQUE
        return node

    def _operator(self) -> str:
        if self._take("in"):
            return "in"
        text = ""
        while self._token.kind == "sign" and self._token.text in _OPERATORS:
            text += self._next().text
        return text

    def _opaque(self, scope: _Scope) -> Node:
        """Reads an expression whose place in the whole is unknown."""
        self.loose.append(self._elsewhere(scope))
        return OPAQUE

    def _elsewhere(self, scope: _Scope) -> Node:
        """Reads an expression that will be used at another level than it is written at."""
        around, self._open = self._open, "?"
        node = self._expression(scope)
        self._open = around
        return node

    def _operand(self, scope: _Scope) -> Node:
        if self._take("local"):
            scope = dict(scope)
            self._bind(scope)
            while self._take(","):
                self._bind(scope)
            self._expect(";")
            return self._expression(scope)
        if self._take("if"):
            self._opaque(scope)
            self._expect("then")
            self._opaque(scope)
            return self._opaque(scope) if self._take("else") else OPAQUE
        if self._take("function"):
            return self._opaque(self._parameters(scope))
        if self._take("assert"):
            self._assertion(scope)
            self._expect(";")
            return self._expression(scope)
        if self._take("error", "-", "+", "!", "~"):
            return self._opaque(scope)
        return self._suffixes(self._primary(scope), scope)

    def _primary(self, scope: _Scope) -> Node:
        if self._take("{"):
            return self._object(scope)
        if self._take("["):
            return self._array(scope)
        if self._take("("):
            node = self._expression(scope)
            self._expect(")")
            return node
        if self._take("import"):
            name = os.path.join(os.path.dirname(self.path), _string_value(self._next()))
            return self._load(os.path.normpath(name))
        if self._take("importstr", "importbin"):
            self._next()
            return OPAQUE
        if self._take("$"):
            return self._reference(self._open.find("{"))
        if self._take("self"):
            return self._reference(self._open.rfind("{"))
        token = self._next()
        if token.kind == "name" and token.text in scope:
            scope[token.text].used = True
            return scope[token.text].node
        return _literal(token)

    def _reference(self, outermost: int) -> Node:
        return OPAQUE if self._open.startswith("?") else Node(reference=(len(self._open) - outermost, ()))

    def _suffixes(self, node: Node, scope: _Scope) -> Node:
        """Reads what follows a primary expression: `.name`, `[index]`, `(arguments)`, `{ more fields }`."""
        while True:
            if self._take("."):
                node = self._member(node, self._next().text)
            elif self._take("["):
                self._sequence("]", scope)
                node = OPAQUE
            elif self._take("("):
                self._sequence(")", scope)
                self._take("tailstrict")
                node = OPAQUE
            elif self._take("{"):
                node = _sum(node, self._object(scope))
            else:
                return node

    def _member(self, node: Node, name: str) -> Node:
        if node.reference is not None:
            levels, keys = node.reference
            return Node(reference=(levels, (*keys, name)))
        entry = (node.fields or {}).get(name)
        return entry.value if entry is not None and entry.certain else OPAQUE

    def _sequence(self, end: str, scope: _Scope) -> None:
        """Reads arguments (`name=value` too), or an index or slice, to the closing bracket."""
        while not self._take(end):
            if not self._take(",", ":"):
                # The name of a named argument reads as an operand of `=`.
                self._opaque(scope)

    def _bind(self, scope: _Scope) -> None:
        """Reads `name = value` or `name(parameters) = value` and adds it to the scope."""
        name = self._next().text
        if self._take("("):
            self._position -= 1
            inner = self._parameters(scope)
            self._expect("=")
            node = self._opaque(inner)
        else:
            self._expect("=")
            node = self._elsewhere(scope)
        scope[name] = _Local(node)
        self._locals.append(scope[name])

    def _parameters(self, scope: _Scope) -> _Scope:
        """Reads `(a, b=1)`; in the scope that it returns the parameters hide outer variables of their names."""
        inner = dict(scope)
        self._expect("(")
        while not self._take(")"):
            inner[self._next().text] = _Local(OPAQUE)
            if self._take("="):
                self._opaque(scope)
            self._take(",")
        return inner

    def _assertion(self, scope: _Scope) -> None:
        self._opaque(scope)
        if self._take(":"):
            self._opaque(scope)

    def _object(self, scope: _Scope) -> Node:
        self._open += "{"
        node = self._fields(dict(scope))
        self._open = self._open[:-1]
        return node

    def _fields(self, scope: _Scope) -> Node:
        fields: dict[str, Entry] = {}
        while not self._take("}"):
            if self._take("local"):
                self._bind(scope)
            elif self._take("assert"):
                self._assertion(scope)
            else:
                self._field(fields, scope)
            if self._token.text in ("for", "if"):
                self._comprehension(scope)
                self.loose += [entry.value for entry in fields.values()]
                self._expect("}")
                return OPAQUE
            self._take(",")
        return Node(fields=fields)

    def _field(self, fields: dict[str, Entry], scope: _Scope) -> None:
        place = self._place()
        key = self._key(scope)
        method = self._token.text == "("
        inner = self._parameters(scope) if method else scope
        adds = self._take("+")
        self._expect(":")
        while self._take(":"):
            pass  # hidden (`::`) and visible (`:::`) fields
        value = self._opaque(inner) if key is None or method else self._expression(inner)
        if key is not None:
            fields[key] = Entry(place, value, adds)

    def _key(self, scope: _Scope) -> str | None:
        """A field's name, None where it is computed."""
        if self._take("["):
            literal = self._expression(scope).literal
            self._expect("]")
            return literal if isinstance(literal, str) else None
        token = self._next()
        return token.text if token.kind == "name" else _string_value(token)

    def _array(self, scope: _Scope) -> Node:
        self._open += "["
        node = self._items(scope)
        self._open = self._open[:-1]
        return node

    def _items(self, scope: _Scope) -> Node:
        items: list[Entry] = []
        while not self._take("]"):
            items.append(Entry(self._place(), self._expression(scope)))
            self._take(",")
            if self._token.text == "for":
                self._comprehension(scope)
                self.loose += [entry.value for entry in items]
                self._expect("]")
                return OPAQUE
        return Node(items=tuple(items))

    def _comprehension(self, scope: _Scope) -> None:
        while self._token.text in ("for", "if"):
            if self._take("for"):
                self._next()
                self._expect("in")
            else:
                self._expect("if")
            self._opaque(scope)


def _tokens(text: str) -> list[_Token]:
    """The tokens of a text without space and comments, closed by one of kind `end`."""
    tokens = []
    line = 1
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "sign"
        if kind != "space":
            tokens.append(_Token(kind, match[0], line))
        line += match[0].count("\n")
    return [*tokens, _Token("end", "", line)]


def _string_value(token: _Token) -> str:
    """The value of a string without escapes."""
    if token.kind != "string" or "\\" in token.text:
        raise Unreadable
    return token.text[1:-1]


def _literal(token: _Token) -> Node:
    if token.kind == "string" and "\\" not in token.text:
        return Node(literal=token.text[1:-1])
    if token.kind == "number":
        return Node(literal=float(token.text.replace("_", "")))
    if token.kind == "name" and token.text in _CONSTANTS:
        return Node(literal=_CONSTANTS[token.text])
    if token.kind in ("string", "verbatim", "block", "name"):
        return OPAQUE
    raise Unreadable
