"""Completes the documentation site: pages from files outside of docs/, tables of commands and config keys, links.

Links in Markdown name files of the repository, so that they work there too. Here they become links to pages of the
site.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

from elmo_tasks import cli
from elmo_tasks.config import config_schema
from elmo_tasks.extras.allennlp.allennlp_keys import ROWS
from elmo_tasks.extras.pretraining.pretraining_config import PretrainingConfig
from elmo_tasks.extras.studies.study import StudyConfig
from elmo_tasks.extras.studies.tuning import SearchConfig
from elmo_tasks.runs.experiment_config import ExperimentConfig

REPOSITORY = Path(__file__).parent.parent.parent
# The pages and pictures made from files outside of docs/.
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changes.md": "CHANGELOG.md",
    "licence.md": "LICENSE",
    "default_bilm.md": "elmo_tasks/elmo/default_bilm/README.md",
    "assignment.md": "notebooks/assignment.md",
    "runtime.md": "elmo_runtime/README.md",
    "own_texts.md": "trained_models/own_texts/README.md",
    "sample_data.md": "elmo_tasks/extras/samples/files/README.md",
    "images/elmo.svg": "elmo_tasks/extras/server/page/elmo.svg",
}
FILES_PAGE = "reference/files.md"  # shows the files of these folders
FOLDERS = {"configs": "elmo_tasks/configs", "studies": "elmo_tasks/extras/studies"}
NOTEBOOKS = "notebooks"  # the folder, and that of their pages
EXECUTED = "build/notebooks"  # where `make docs` runs them
# The outputs of notebooks in blocks of their own: indented ones would be coloured as commands.
OUTPUTS = """{% extends "markdown/index.md.j2" %}{% block stream %}
```text
{{ output.text | trim("\n") }}
```
{% endblock stream %}"""
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
COLORS = "stylesheets/colors.css"  # made of those of the server's page
SERVER_STYLE = "elmo_tasks/extras/server/page/style.css"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, source in PAGES.items():
        text = (REPOSITORY / source).read_text(encoding="utf-8")
        content = text if source.endswith((".md", ".svg")) else f"```text\n{text}```\n"
        files.append(File.generated(config, name, content=content))
    files.append(File.generated(config, FILES_PAGE, content="\n".join(packaged_files()) + "\n"))
    for path in sorted((REPOSITORY / NOTEBOOKS).glob("*.ipynb")):
        for name, part in notebook(path).items():
            files.append(File.generated(config, name, content=part))
    style = (REPOSITORY / SERVER_STYLE).read_text(encoding="utf-8")
    files.append(File.generated(config, COLORS, content=colors(style)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links to files of the repository into links to pages, and adds the generated tables."""
    name = page.file.src_uri
    source = PAGES.get(name, f"docs/{name}")  # in the repository

    def page_of(target: str) -> str:
        """The page that shows a file or folder of the repository."""
        for own, other in PAGES.items():
            if target == other:
                return own
        if target.startswith(f"{NOTEBOOKS}/"):
            return target.replace(".ipynb", ".md")
        for folder, origin in FOLDERS.items():
            for prefix in (folder, origin):
                if target == prefix:
                    return f"{FILES_PAGE}#{folder}"
                if target.startswith(f"{prefix}/"):
                    return f"{FILES_PAGE}#{anchor(folder + target.removeprefix(prefix))}"
        if target.startswith("docs/"):
            return target.removeprefix("docs/")
        raise PluginError(f"{source}: the link to {target} leads to no page")

    def rewrite(match: re.Match[str]) -> str:
        link, _, place = match[2].partition("#")
        if not link or "://" in link or link.startswith("mailto:"):
            return match[0]
        page_name, _, found = page_of(posixpath.normpath(posixpath.join(posixpath.dirname(source), link))).partition(
            "#"
        )
        target = posixpath.relpath(page_name, posixpath.dirname(name) or ".")
        place = place or found
        return f"{match[1]}{target}{'#' + place if place else ''}{match[3]}"

    if name == FILES_PAGE:
        return markdown
    if name.startswith(NOTEBOOKS):
        return markdown.replace(".ipynb)", ".md)")
    tables = {"reference/commands.md": commands, "reference/configs.md": configs, "from_allennlp.md": allennlp_keys}
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)  # code is left as it is
    rewritten = "".join(part if part.startswith("```") else LINK.sub(rewrite, part) for part in parts)
    return "\n".join((rewritten, *tables[name]())) if name in tables else rewritten


def colors(style: str) -> str:
    """The colours of a style sheet, `--name: light-dark(one, other);`, for the schemes of the site."""
    found = re.findall(r"^  (--[a-z-]+): light-dark\((#\w+), (#\w+)\);", style, re.MULTILINE)
    schemes = (("default", 1), ("slate", 2))
    rules = ((scheme, " ".join(f"{each[0]}: {each[place]};" for each in found)) for scheme, place in schemes)
    return "".join(f'[data-md-color-scheme="{scheme}"] {{ {rule} }}\n' for scheme, rule in rules)


def anchor(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(header)} |", "|" + "---|" * len(header), *lines, ""] if lines else []


def commands() -> Iterator[str]:
    """The arguments of all commands, from their parsers."""
    parser = cli.make_parser(cli.COMMANDS)
    actions = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in actions.choices.items():
        usage = command.format_usage().removeprefix("usage: ").strip()
        yield f"## {name}\n\n{command.description}\n\n```text\n{usage}\n```\n"
        yield f"Example:\n\n```\n{cli.COMMANDS[name].row.example}\n```\n"
        rows = [
            (f"`{', '.join(action.option_strings) or action.metavar or action.dest}`", cell(action.help or ""))
            for action in command._actions
            if action.dest not in ("help", "verbosity")
        ]
        yield from table(("argument", "what it does"), rows)


def configs() -> Iterator[str]:
    """The keys of configs, from their schema."""
    kinds = (ExperimentConfig, PretrainingConfig, StudyConfig, SearchConfig)
    definitions = config_schema(*kinds)["$defs"]
    first = tuple(kind.__name__ for kind in kinds)
    for name in (*first, *sorted(definitions.keys() - set(first))):
        definition = definitions[name]
        yield f"## {name} {{ #{name.lower()} }}\n\n{definition.get('description', '')}\n"
        if "oneOf" in definition:
            yield from table(
                ("type", "part"), [(_type(definitions, each), _kind(each)) for each in definition["oneOf"]]
            )
            continue
        required = definition.get("required", [])
        rows = [
            (
                f"`{key}`",
                _kind(value),
                "" if key in required else _default(value),
                cell(value.get("description") or _described(definitions, value)),
            )
            for key, value in definition["properties"].items()
        ]
        yield from table(("key", "value", "default", "what it does"), rows)


def allennlp_keys() -> list[str]:
    """AllenNLP's keys of configs, and what they are called here."""
    return table(("AllenNLP", "here"), [(row.old, row.new) for row in ROWS])


def _described(definitions: dict[str, Any], value: dict[str, Any]) -> str:
    """What a value's own definition says in its first sentence, for keys that say nothing."""
    description = definitions[value["$ref"].rpartition("/")[2]].get("description", "") if "$ref" in value else ""
    return description.partition(".")[0]


def _default(schema: dict[str, Any]) -> str:
    return f"`{cell(json.dumps(schema['default'], ensure_ascii=False))}`" if "default" in schema else ""


def _type(definitions: dict[str, Any], alternative: dict[str, Any]) -> str:
    part = definitions[alternative["$ref"].rpartition("/")[2]]
    chosen = part["properties"]["type"]["const"]
    return f"`{chosen}`{'' if 'required' in alternative else ' (default)'}"


def _kind(schema: dict[str, Any]) -> str:
    """The kind of value that a schema describes, with links to parts."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema or "oneOf" in schema:
        return " or ".join(dict.fromkeys(map(_kind, schema.get("anyOf") or schema["oneOf"])))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    kind = schema.get("type", "any value")
    if kind == "array":
        items = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
        return f"list of {_kind(items)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {schema[key]}" for key, sign in bounds.items() if key in schema]
    return cell(f"{kind} {', '.join(limits)}".strip())


def packaged_files() -> Iterator[str]:
    """The page that shows the configs and studies of the package."""
    yield "# Files in the package\n\nThe configs and studies that are used by name.\n"
    for folder, origin in FOLDERS.items():
        yield f"## {folder}\n"
        for path in sorted((REPOSITORY / origin).rglob("*.*sonnet")):
            name = f"{folder}/{path.relative_to(REPOSITORY / origin)}"
            yield f"### {name} {{ #{anchor(name)} }}\n\n```jsonnet\n{path.read_text(encoding='utf-8')}```\n"


def notebook(path: Path) -> dict[str, str | bytes]:
    """The page of a notebook and its pictures, by name: with its outputs if `make docs` has run it."""
    executed = REPOSITORY / EXECUTED / path.name
    source = executed if executed.exists() and executed.stat().st_mtime >= path.stat().st_mtime else path
    exporter = MarkdownExporter(raw_template=OUTPUTS, preprocessors=[CoalesceStreamsPreprocessor])
    page, resources = exporter.from_filename(str(source), resources={"unique_key": path.stem})
    pictures = {f"{NOTEBOOKS}/{name}": content for name, content in resources["outputs"].items()}
    return {f"{NOTEBOOKS}/{path.stem}.md": page, **pictures}
