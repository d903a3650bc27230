"""The commands of `elmo-tasks`: the arguments of each command, next to the function that runs it.

`command` lists them all. The functions import what they need when they are called, so that `--help` answers at once.
"""
