// Sentiment in five classes, Stanford Sentiment Treebank: the biattentive classification network of McCann et al. (2017)
// as trained by Peters et al. (2018), section 4 and supplement. Dropout, batch size, number of epochs and the sizes of the
// last layers are not in the paper; they are AllenNLP's.
// The data is in $ELMO_TASKS_DATA, laid out as docs/data_sets.md says.
local data = std.extVar('ELMO_TASKS_DATA');

{
  // Null for the baseline without ELMo.
  elmo:: (import 'elmo.libsonnet') + { mixes: ['input', 'output'] },

  // Phrases are used for training, and only whole sentences for validation and test.
  dataset_reader: { type: 'sst', subtrees: true, min_length: 4 },
  validation_dataset_reader: { type: 'sst' },
  train_data_path: data + '/sst5/train.txt',
  validation_data_path: data + '/sst5/dev.txt',
  test_data_path: data + '/sst5/test.txt',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'bcn',
    embedder: {
      // The paper uses 300 features: to use another file of GloVe, set both `vectors` and `size`.
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, trainable: false },
      elmo: $.elmo,
    },
    embedding_dropout: 0.5,
    pre_encoder: { hidden_sizes: [300], dropout: 0.25 },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [300] },
    integrator: { type: 'stacked_bilstm', hidden_sizes: [300] },
    integrator_dropout: 0.1,
    output: { hidden_sizes: [1200, 600], dropout: 0.25 },
  },
  data_loader: { batch_size: 100 },
  trainer: {
    num_epochs: 20,
    patience: 5,
    validation_metric: '+accuracy',
    optimizer: { type: 'adam', lr: 0.0001 },
    grad_norm: 5.0,
    // The paper's lambda, only on the weights of the mixes.
    regularizers: if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.001 }],
  },
  random_seed: 1,
}
