// The resolver of coref_conll12.jsonnet on OntoGUM, 15 genres annotated as OntoNotes is, in CoNLL-2012's columns.
local data = std.extVar('ELMO_TASKS_DATA');

(import 'coref_conll12.jsonnet') {
  train_data_path: data + '/coref_ontogum/ontogum.train.v4_gold_conll.xz',
  validation_data_path: data + '/coref_ontogum/ontogum.dev.v4_gold_conll',
  test_data_path: data + '/coref_ontogum/ontogum.test.v4_gold_conll',
  // 0.1 % every 100 steps, over 177 documents.
  trainer+: { learning_rate_scheduler+: { gamma: 0.998 } },
}
