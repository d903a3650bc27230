// What the configs for small data have in common: ELMo of the biLM in the package and no other vectors, small batches, and epochs
// of at least 200 steps, so that 40 examples are enough for a model to learn and 5,000 take minutes of one core.
{
  // Null for the same without ELMo. Gamma begins at 1, because there are no word vectors that ELMo could outweigh.
  elmo:: (import '../elmo.libsonnet') { gamma: 1.0, dropout: 0.2 },

  // Without ELMo, the model has only the characters.
  embedder:: { characters: { embedding_size: 16, filters: 64, width: 3 }, elmo: $.elmo },

  train_data_path: 'train.csv',
  validation_data_path: 'dev.csv',
  folds: 5,
  vocabulary: { lowercase_words: true },
  data_loader: { batch_size: 4, min_batches: 200 },
  validation_data_loader: { batch_size: 32 },
  trainer: {
    num_epochs: 10,
    patience: 5,
    optimizer: { type: 'adam', lr: 0.001 },
    learning_rate_scheduler: { type: 'linear_decay' },
    grad_norm: 5.0,
    regularizers: if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.001 }],
  },
  random_seed: 1,
}
