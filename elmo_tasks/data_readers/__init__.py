"""From a publisher's format, JSON lines or a hub data set to a `datasets.Dataset`: one file per format.

A reader is imported when a config has its `"type"`. Extras add more.
"""

from elmo_tasks import hooks
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Parsing

hooks.announce(DatasetReaderConfig.__name__, {
    "conll2003": "elmo_tasks.data_readers.conll2003:Conll2003Config",
    "coref_conll2012": "elmo_tasks.data_readers.conll2012:CoreferenceConll2012Config",
    "hub": "elmo_tasks.data_readers.rows:HubConfig",
    "jsonl": "elmo_tasks.data_readers.rows:JsonlConfig",
    "snli": "elmo_tasks.data_readers.snli:SnliConfig",
    "squad": "elmo_tasks.data_readers.squad:SquadConfig",
    "srl_conll2012": "elmo_tasks.data_readers.srl:SrlConll2012Config",
    "sst": "elmo_tasks.data_readers.sst:SstConfig",
})  # fmt: skip

__all__ = ["DatasetReader", "DatasetReaderConfig", "Parsing"]
