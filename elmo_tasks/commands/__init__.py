"""The commands of `elmo-tasks`: of each its arguments and what it runs, side by side.

What runs imports what it needs, so that `--help` answers at once.
"""
