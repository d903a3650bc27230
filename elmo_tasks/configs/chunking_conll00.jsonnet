// Chunking, CoNLL-2000: the tagger of ner_conll03.jsonnet. A tenth of the training sentences is validation data, since the
// task has none. The files of CoNLL-2003 have chunks in the same column.
local data = std.extVar('ELMO_TASKS_DATA');

(import 'ner_conll03.jsonnet') {
  dataset_reader: { type: 'conll2003', tag_scheme: 'BIOUL', columns: [0, 2] },
  train_data_path: data + '/chunking_conll2000/train.txt',
  validation_data_path: null,
  validation_share: 0.1,
  test_data_path: data + '/chunking_conll2000/test.txt',
}
