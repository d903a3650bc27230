"""Results for people: what to draw for each task, and how to draw it on a terminal or on a page."""

from elmo_tasks.rendering.tasks import describe, register_description

__all__ = ["describe", "register_description"]
