"""From a publisher's format, JSON lines or a hub data set to a `datasets.Dataset`: one file per format.

Importing this package registers the `"type"` of each of these readers. Extras add more.
"""

from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.data_readers.conll2012 import CoreferenceConll2012Config
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.rows import HubConfig, JsonlConfig
from elmo_tasks.data_readers.snli import SnliConfig
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.data_readers.squad import SquadConfig
from elmo_tasks.data_readers.srl import SrlConll2012Config
from elmo_tasks.data_readers.sst import SstConfig

__all__ = [
    "Conll2003Config", "CoreferenceConll2012Config", "DatasetReader", "DatasetReaderConfig", "HubConfig",
    "JsonlConfig", "Parsing", "SnliConfig", "SquadConfig",
    "SrlConll2012Config", "SstConfig"
]  # fmt: skip
