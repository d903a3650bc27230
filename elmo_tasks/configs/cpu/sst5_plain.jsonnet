// The data of sst5.jsonnet for a plain classifier: a biLSTM, the maximum over the tokens and a linear layer.
local data = std.extVar('ELMO_TASKS_DATA');

{
  // Null for the baseline without ELMo.
  elmo:: (import '../elmo.libsonnet') + { mixes: ['input', 'output'], dropout: 0.3 },

  dataset_reader: { type: 'sst', subtrees: true, min_length: 4 },
  validation_dataset_reader: { type: 'sst' },
  train_data_path: data + '/sst5/train.txt',
  validation_data_path: data + '/sst5/dev.txt',
  test_data_path: data + '/sst5/test.txt',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'text_classifier',
    embedder: {
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, trainable: true, unknown_probability: 0.05 },
      elmo: $.elmo,
    },
    embedding_dropout: 0.3,
    encoder: { type: 'stacked_bilstm', hidden_sizes: [150] },
    pooling: 'max',
    dropout: 0.3,
  },
  data_loader: { batch_size: 64 },
  trainer: {
    num_epochs: 4,
    validation_metric: '+accuracy',
    optimizer: { type: 'adam', lr: 0.001 },
    learning_rate_scheduler: { type: 'linear_decay' },
    moving_average: { decay: 0.999 },
    grad_norm: 5.0,
    regularizers: if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.001 }],
  },
  random_seed: 1,
}
