"""Configs: from Jsonnet files to frozen, validated settings, with every problem reported at once."""

from elmo_tasks.config.load import Overrides, describe, load_config, override_list
from elmo_tasks.config.packages import include_packages, own_code, own_packages
from elmo_tasks.config.parts import Config, DataPath, LocalPath, ModelPath, Part, config_schema, parse_part, to_json

__all__ = [
    "Config", "DataPath", "LocalPath", "ModelPath", "Overrides", "Part", "config_schema", "describe",
    "include_packages", "load_config", "override_list", "own_code", "own_packages", "parse_part", "to_json"
]  # fmt: skip
