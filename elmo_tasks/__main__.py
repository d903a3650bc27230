"""`python -m elmo_tasks` is `elmo-tasks`."""

from elmo_tasks.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
