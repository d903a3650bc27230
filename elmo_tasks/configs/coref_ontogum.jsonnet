// The resolver of coref_conll12.jsonnet on OntoGUM: 15 genres with the annotation of OntoNotes, in the columns of CoNLL-2012.
local data = std.extVar('ELMO_TASKS_DATA');

(import 'coref_conll12.jsonnet') {
  train_data_path: data + '/coref_ontogum/ontogum.train.v4_gold_conll.xz',
  validation_data_path: data + '/coref_ontogum/ontogum.dev.v4_gold_conll',
  test_data_path: data + '/coref_ontogum/ontogum.test.v4_gold_conll',
  // A decay of 0.1 % every 100 steps, for an epoch of 177 documents.
  trainer+: { learning_rate_scheduler+: { gamma: 0.998 } },
}
