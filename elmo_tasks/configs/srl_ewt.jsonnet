// The labeller of srl_conll12.jsonnet on the English Web Treebank with PropBank annotation, in the columns of CoNLL-2012.
local data = std.extVar('ELMO_TASKS_DATA');

(import 'srl_conll12.jsonnet') {
  train_data_path: data + '/srl_ewt/ewt.train.gold_conll.xz',
  validation_data_path: data + '/srl_ewt/ewt.dev.gold_conll',
  test_data_path: data + '/srl_ewt/ewt.test.gold_conll',
}
