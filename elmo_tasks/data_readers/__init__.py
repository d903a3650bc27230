"""One file per data set: from the publisher's format, or a hub data set, to a `datasets.Dataset` and to batches.

Importing this package registers every reader's `"type"`.
"""

from elmo_tasks.data_readers.conll2003 import Conll2003Config, Conll2003Reader
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig

__all__ = ["Conll2003Config", "Conll2003Reader", "DatasetReader", "DatasetReaderConfig"]
