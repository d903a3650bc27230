"""One file per data set: from the publisher's format, or a hub data set, to a `datasets.Dataset` and to batches.

Importing this package registers every reader's `"type"`.
"""

from elmo_tasks.data_readers.conll2003 import Conll2003Config, Conll2003Reader
from elmo_tasks.data_readers.conllu import ConlluConfig, ConlluReader
from elmo_tasks.data_readers.coref import CoreferenceConll2012Config, CoreferenceConll2012Reader
from elmo_tasks.data_readers.predicates import PredicatesConfig, PredicatesReader
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.snli import SnliConfig, SnliReader
from elmo_tasks.data_readers.squad import SquadConfig, SquadReader
from elmo_tasks.data_readers.srl import SrlConll2005Config, SrlConll2005Reader, SrlConll2012Config, SrlConll2012Reader
from elmo_tasks.data_readers.sst import SstConfig, SstReader

__all__ = [
    "Conll2003Config",
    "Conll2003Reader",
    "ConlluConfig",
    "ConlluReader",
    "CoreferenceConll2012Config",
    "CoreferenceConll2012Reader",
    "DatasetReader",
    "DatasetReaderConfig",
    "PredicatesConfig",
    "PredicatesReader",
    "SnliConfig",
    "SnliReader",
    "SquadConfig",
    "SquadReader",
    "SrlConll2005Config",
    "SrlConll2005Reader",
    "SrlConll2012Config",
    "SrlConll2012Reader",
    "SstConfig",
    "SstReader",
]
