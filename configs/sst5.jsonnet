// Sentiment, Stanford Sentiment Treebank in five classes: the biattentive classification network of McCann et al. (2017)
// as Peters et al. (2018) train it, section 4 and supplement. They do not give the dropout, the batches, the number of
// epochs and the sizes of the last layers: those are AllenNLP's.
// The folder of the data, laid out as the README says, is $ELMO_TASKS_DATA.
local data = std.extVar('ELMO_TASKS_DATA');

{
  // Null for the baseline without ELMo.
  elmo:: (import 'elmo.libsonnet') + { mixes: ['input', 'output'] },

  // Phrases teach, whole sentences test.
  dataset_reader: { type: 'sst', subtrees: true, min_length: 4 },
  validation_dataset_reader: { type: 'sst' },
  train_data_path: data + '/sst5/train.txt',
  validation_data_path: data + '/sst5/dev.txt',
  test_data_path: data + '/sst5/test.txt',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'bcn',
    embedder: {
      // The paper has 300 features: with another file of GloVe, set both `vectors` and `size`.
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
    // The paper's lambda, on the weights of the mixes alone.
    regularizers: if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.001 }],
  },
  random_seed: 1,
}
