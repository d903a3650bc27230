// The tagger of ner_conll03.jsonnet on data that `elmo-tasks sample-data runs/quickstart-data --task ner` writes.
local data = 'runs/quickstart-data';

(import 'ner_conll03.jsonnet') {
  train_data_path: data + '/ner_conll2003/eng.train',
  validation_data_path: data + '/ner_conll2003/eng.testa',
  test_data_path: data + '/ner_conll2003/eng.testb',
  model+: { embedder+: { words+: { vectors: data + '/glove/glove.6B.50d.txt.xz' } } },
  data_loader: { batch_size: 8 },
  trainer+: { num_epochs: 5, optimizer+: { lr: 0.004 }, moving_average: null },
}
