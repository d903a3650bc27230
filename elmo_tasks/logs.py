"""Logs on standard error."""

from __future__ import annotations

import logging
import sys


class _TerminalFormatter(logging.Formatter):
    """Only the message, after the level if it is a warning or worse."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return f"{record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text


def set_up_logging(level: int) -> None:
    """Sends logs of `level` and above to standard error."""
    handler: logging.Handler
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.logging import RichHandler

        handler = RichHandler(
            console=Console(stderr=True), show_level=False, show_path=level <= logging.DEBUG, log_time_format="%H:%M"
        )
        handler.setFormatter(_TerminalFormatter())
    else:  # one line per message, so that log files work with grep
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    package = logging.getLogger("elmo_tasks")
    package.handlers = [handler]
    package.setLevel(level)
