"""The documentation site, opened from a folder: its search finds pages, and no table is cut off."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import pages

# Tables whose right end cannot be reached.
CUT_TABLES = """() => [...document.querySelectorAll("table")].filter((table) =>
    !table.closest(".md-typeset__scrollwrap, .highlight") && table.getBoundingClientRect().right > innerWidth).length"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=pages.REPOSITORY, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder


def test_the_search_works_without_a_server(site: Path, browser: Any) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "reference" / "python.html").as_uri())
    page.locator("input.md-search__input").click()
    page.keyboard.type("trackers")
    first = page.locator(".md-search-result__link").first
    first.wait_for(timeout=30_000)
    assert first.get_attribute("href") == (site / "configs_and_runs.html").as_uri()
    assert all(url.startswith(site.as_uri()) for url in asked), "nothing comes from outside of the site"


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_screen(site: Path, browser: Any, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    for path in ("index", "results", "data_sets", "reference/python"):
        page.goto((site / f"{path}.html").as_uri())
        page.locator(".md-typeset__scrollwrap").first.wait_for(state="attached")
        assert page.evaluate(CUT_TABLES) == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
