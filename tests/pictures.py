"""The pictures of the documentation: what commands print, and the page of the server, with the trained models.

A picture of a terminal, `predict.svg`, has its text in itself. A picture of the page has the page's text as its
description. So a test can compare what they show with what is shown today.

`python -m tests.pictures` makes all of them again.
"""

import contextlib
import html
import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, PngImagePlugin

from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.bilm_vectors import bilms_of_runs
from elmo_tasks.extras.server.served_runs import load_runs
from elmo_tasks.files.installed_models import installed_models, twins
from tests import pages
from tests.browser import open_browser, served

IMAGES = pages.REPOSITORY / "docs" / "images"
TERMINAL = IMAGES / "predict.svg"
# The tabs of the page, and their pictures.
TABS = {
    "Names": IMAGES / "server_names.png",
    "Parts of speech": IMAGES / "server_parts_of_speech.png",
    "Roles": IMAGES / "server_roles.png",
    "Coreference": IMAGES / "server_coreference.png",
    "Questions": IMAGES / "server_questions.png",
    "Inference": IMAGES / "server_inference.png",
    "Sentiment": IMAGES / "server_sentiment.png",
    "ELMo": IMAGES / "server_elmo.png",
}
DARK = ("Inference",)
# What is printed below the commands that the terminal shows.
_PREDICT = {
    "elmo-tasks predict ner -": "Maria Lopez, a Spanish diplomat, joined the United Nations in Geneva last May.",
    "elmo-tasks predict roles -": "The nurse gave the old man a blanket before the doctor arrived.",
    "elmo-tasks predict coreference -": "Charles Darwin sailed around the world on the Beagle. The voyage "
    "took five years, and it changed his view of nature.",
    "elmo-tasks predict sentiment -": "The story is thin, but the two leads are a joy to watch.",
}


def terminal(folder: Path) -> str:
    """An SVG of what a terminal shows."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    shell = pages.Shell(folder, shared=folder)
    for command, text in _PREDICT.items():
        printed, _ = shell.run(f"echo '{text}' | {command}", colors=True)
        console.print(Text(f"$ {command}", style="bold"), Text.from_ansi(printed.strip("\n")), "", sep="\n")
    return console.export_svg(title="elmo-tasks predict", unique_id="predict")


def text_of_terminal(svg: str) -> str:
    """The lines of such a picture."""
    lines: dict[float, str] = {}
    for y, text in re.findall(r'<text class="predict-r\d+"[^>]* y="([\d.]+)"[^>]*>([^<]*)', svg):
        lines[float(y)] = lines.get(float(y), "") + html.unescape(text).replace("\xa0", " ").rstrip("\n")
    return "\n".join(line for _, line in sorted(lines.items()))


def text_of_page(picture: Path) -> str:
    """What the page of the server said when the picture was made."""
    with Image.open(picture) as image:
        return str(image.info.get("Description", ""))


@contextlib.contextmanager
def page_of_the_models(browser: Any) -> Iterator[Any]:
    """Serves the trained models as `elmo-tasks serve` does, and opens their page in a browser."""
    models = installed_models()
    without_elmo = twins(models)
    runs = load_runs([model.name for model in models if model.name not in without_elmo], batch_tokens=256)
    bilms = bilms_of_runs(runs)
    bilms[""].warm_up()
    with served(create_app(runs, bilms)) as address:
        page = browser.new_page(viewport={"width": 960, "height": 700})
        page.goto(address)
        page.get_by_role("tab").first.wait_for()
        yield page


def show_first_example(page: Any, tab: str) -> str:
    """Clicks the first example of a tab; returns the text of the page."""
    page.emulate_media(color_scheme="dark" if tab in DARK else "light", reduced_motion="reduce")
    page.get_by_role("tab", name=tab, exact=True).click()
    panel = page.get_by_role("tabpanel", name=tab, exact=True)
    panel.locator(".example").first.click()
    panel.locator(".result[aria-busy=false] .found").wait_for(timeout=60_000)
    return str(page.locator("main").inner_text())


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        TERMINAL.write_text(terminal(Path(temporary)), encoding="utf-8")
    with open_browser() as browser, page_of_the_models(browser) as page:
        for tab, picture in TABS.items():
            description = PngImagePlugin.PngInfo()
            description.add_itxt("Description", show_first_example(page, tab))
            page.mouse.move(0, 0)
            screenshot = Image.open(io.BytesIO(page.screenshot(full_page=True)))
            image = screenshot.convert("P", palette=Image.Palette.ADAPTIVE, colors=256)
            image.save(picture, pnginfo=description, optimize=True)


if __name__ == "__main__":
    main()
