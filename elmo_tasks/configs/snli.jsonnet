// Natural language inference, SNLI 1.0: ESIM of Chen et al. (2017) as trained by Peters et al. (2018), section 4 and
// supplement. The data is in $ELMO_TASKS_DATA, laid out as docs/data_sets.md says.
local data = std.extVar('ELMO_TASKS_DATA');

{
  // Null for the baseline without ELMo. The paper normalizes each layer over all values of a batch ('batch'), so that
  // a prediction depends on the rest of its batch. Here each token is normalized separately.
  elmo:: (import 'elmo.libsonnet') + { mixes: ['input', 'output'], layer_normalization: 'token' },

  // The official files have binary parses, whose words are used. For files without parses the reader finds out whether
  // the sentences are raw or tokenized; set `tokenized` to decide it.
  dataset_reader: { type: 'snli' },
  train_data_path: data + '/snli/snli_1.0_train.jsonl',
  validation_data_path: data + '/snli/snli_1.0_dev.jsonl',
  test_data_path: data + '/snli/snli_1.0_test.jsonl',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'esim',
    embedder: {
      // The paper uses 300 features: to use another file of GloVe, set both `vectors` and `size`.
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, trainable: false },
      elmo: $.elmo,
    },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [300], dropout: 0.5 },
    alignment_dropout: 0.5,
    projection: { hidden_sizes: [300] },
    composition: { type: 'stacked_bilstm', hidden_sizes: [300], dropout: 0.5 },
    dropout: 0.5,
    output: { hidden_sizes: [300], dropout: 0.5 },
  },
  data_loader: { batch_size: 32 },
  validation_data_loader: { batch_size: 128 },
  trainer: {
    num_epochs: 75,
    patience: 5,
    validation_metric: '+accuracy',
    optimizer: { type: 'adam', lr: 0.0004 },
    learning_rate_scheduler: { type: 'reduce_on_plateau', factor: 0.5 },
    grad_norm: 5.0,
    // The paper uses this penalty on the weight matrices, and the alignment dropout above, only with ELMo. Here the
    // baseline has them too. With ELMo, there is also the paper's lambda, only on the weights of the mixes.
    regularizers: [{ parameters: '^(encoder|projection|composition|output|scores)\\..*weight', l2: 0.0001 }] +
                  (if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.001 }]),
  },
  random_seed: 1,
}
