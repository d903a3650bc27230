// Named entities of OntoNotes 5, 18 kinds: the tagger of ner_conll03.jsonnet on the files of CoNLL-2012. The data is in
// $ELMO_TASKS_DATA; the three folders below contain *gold_conll files. The New Testament, without names, is left out.
local data = std.extVar('ELMO_TASKS_DATA') + '/conll-2012/v4/data';

(import 'ner_conll03.jsonnet') {
  dataset_reader: { type: 'ner_conll2012', tag_scheme: 'BIOUL' },
  train_data_path: data + '/train/data/english',
  validation_data_path: data + '/development/data/english',
  test_data_path: data + '/test/data/english',
}
