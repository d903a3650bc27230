// Named entity recognition, CoNLL-2003 English: the biLSTM-CRF tagger of Peters et al. (2018), section 4 and supplement A.5.
// The published training has a rate of 0.001, and stops when the validation score does. This one is shorter: it has a fixed
// number of epochs, in which a higher rate falls to zero, and averages the weights.
// The data is in $ELMO_TASKS_DATA, laid out as docs/data_sets.md says.
local data = std.extVar('ELMO_TASKS_DATA');

{
  // Null for the baseline without ELMo. The published dropout is 0.5.
  elmo:: (import 'elmo.libsonnet') { dropout: 0.3 },

  dataset_reader: { type: 'conll2003', tag_scheme: 'BIOUL' },
  train_data_path: data + '/ner_conll2003/eng.train',
  validation_data_path: data + '/ner_conll2003/eng.testa',
  test_data_path: data + '/ner_conll2003/eng.testb',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'crf_tagger',
    tag_scheme: 'BIOUL',
    embedder: {
      // Known words are replaced by the unknown word at times, so that its vector is trained.
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, unknown_probability: 0.05 },
      characters: { embedding_size: 16, filters: 128, width: 3 },
      elmo: $.elmo,
    },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [200, 100], dropout: 0.5 },
    dropout: 0.5,
  },
  data_loader: { batch_size: 32 },
  validation_data_loader: { batch_size: 64 },
  trainer: {
    num_epochs: 25,
    validation_metric: '+f1',
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: { type: 'linear_decay' },
    grad_norm: 5.0,
    moving_average: { decay: 0.999 },
    // The paper's lambda of 0.1, only on the weights of the mix.
    regularizers: if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.1 }],
  },
  random_seed: 1,
}
