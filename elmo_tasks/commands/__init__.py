"""The commands of `elmo-tasks`: the arguments of each command, next to the function that runs it.

These functions import what they need when they are called, so that `--help` answers at once.
"""
