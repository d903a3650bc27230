// The labeller of srl_conll12.jsonnet on CoNLL-2005: sections 2 to 21 of the Wall Street Journal to train on, 24 to validate
// and 23 to test. For the Brown corpus: elmo-tasks evaluate RUN $ELMO_TASKS_DATA/conll05st-release/test.brown
local data = std.extVar('ELMO_TASKS_DATA') + '/conll05st-release';

(import 'srl_conll12.jsonnet') {
  dataset_reader: { type: 'srl_conll2005' },
  train_data_path: data + '/train',
  validation_data_path: data + '/devel',
  test_data_path: data + '/test.wsj',
}
