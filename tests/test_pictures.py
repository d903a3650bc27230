"""Pictures of the documentation show what commands and the server show today. `python -m tests.pictures` makes them."""

from pathlib import Path
from typing import Any

import pytest

from tests import pages, pictures

pytestmark = pytest.mark.slow


def test_the_terminal(tmp_path: Path) -> None:
    shown = pictures.text_of_terminal(pictures.TERMINAL.read_text(encoding="utf-8"))
    printed = pictures.text_of_terminal(pictures.terminal(tmp_path))
    assert pages.same_lines(shown, printed), f"shown:\n{shown}\nprinted:\n{printed}"  # labels of 0.0 % in any order


def test_the_page(browser: Any) -> None:
    with pictures.page_of_the_models(browser) as page:
        for tab, picture in pictures.TABS.items():
            # Without numbers: shares of attention differ much between processors.
            assert pages.words(pictures.text_of_page(picture)) == pages.words(pictures.show_first_example(page, tab))
