// Universal parts of speech in any language: the tagger of pos_ewt.jsonnet on the treebank of Universal Dependencies whose
// files are in $ELMO_TASKS_DATA/pos_ud. For English, words come with GloVe's vectors and ELMo is the biLM in the package.
// In another language, words learn their vectors, and ELMo needs a biLM that reads it (docs/language_models.md):
//   --set model.embedder.words.vectors=null --set model.embedder.elmo.bilm=DIR
local data = std.extVar('ELMO_TASKS_DATA') + '/pos_ud';

(import 'pos_ewt.jsonnet') {
  dataset_reader: { type: 'conllu', tag_column: 'upos' },
  train_data_path: data + '/*-ud-train.conllu*',
  validation_data_path: data + '/*-ud-dev.conllu*',
  test_data_path: data + '/*-ud-test.conllu*',
}
