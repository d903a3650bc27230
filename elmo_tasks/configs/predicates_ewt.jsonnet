// The tagger of predicates_conll12.jsonnet on the files of srl_ewt.jsonnet.
local srl = import 'srl_ewt.jsonnet';

(import 'predicates_conll12.jsonnet') {
  train_data_path: srl.train_data_path,
  validation_data_path: srl.validation_data_path,
  test_data_path: srl.test_data_path,
}
