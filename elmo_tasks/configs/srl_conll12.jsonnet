// Semantic roles, CoNLL-2012 English (OntoNotes 5): the alternating highway LSTM of He et al. (2017), as in Peters et al.
// (2018), section 4. The data is in $ELMO_TASKS_DATA; the three folders below contain *gold_conll files.
local data = std.extVar('ELMO_TASKS_DATA');

{
  // Null for the baseline without ELMo. A second mix at the output makes this head worse.
  elmo:: (import 'elmo.libsonnet') { dropout: 0.1 },

  dataset_reader: { type: 'srl_conll2012' },
  train_data_path: data + '/conll-2012/v4/data/train/data/english',
  validation_data_path: data + '/conll-2012/v4/data/development/data/english',
  test_data_path: data + '/conll-2012/v4/data/test/data/english',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'srl',
    embedder: {
      // The paper uses GloVe's 100 features: set the file to glove.6B.100d.txt and the size to 100.
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, unknown_probability: 0.05 },
      elmo: $.elmo,
    },
    encoder: { type: 'alternating_lstm', hidden_size: 300, num_layers: 8, dropout: 0.1 },
    predicate_size: 100,
  },
  data_loader: { batch_size: 80 },
  trainer: {
    num_epochs: 500,
    patience: 20,
    validation_metric: '+f1',
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95, eps: 1e-6 },
    // Gradients explode now and then. In bfloat16, a run on EWT diverged, so keep `precision` at float32.
    grad_clipping: 1.0,
    // The lambda of the paper's best runs, only on the weights of the mix.
    regularizers: if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.001 }],
  },
  random_seed: 1,
}
