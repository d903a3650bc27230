// The labeller of srl_conll12.jsonnet on the English Web Treebank, as PropBank annotates it, in CoNLL-2012's columns.
local data = std.extVar('ELMO_TASKS_DATA');

(import 'srl_conll12.jsonnet') {
  train_data_path: data + '/srl_ewt/ewt.train.gold_conll.xz',
  validation_data_path: data + '/srl_ewt/ewt.dev.gold_conll',
  test_data_path: data + '/srl_ewt/ewt.test.gold_conll',
}
