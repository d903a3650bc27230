// The tagger of ner_conll03.jsonnet on data that `elmo-tasks sample-data runs/quickstart-data --task ner` makes.
local data = 'runs/quickstart-data';

(import 'ner_conll03.jsonnet') {
  train_data_path: data + '/ner/train.txt',
  validation_data_path: data + '/ner/dev.txt',
  test_data_path: data + '/ner/test.txt',
  model+: { embedder+: { words+: { vectors: data + '/vectors.txt' } } },
  data_loader: { batch_size: 8 },
  trainer+: { num_epochs: 5, moving_average: null },
}
