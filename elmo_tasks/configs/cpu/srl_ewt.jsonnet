// A smaller version of ../srl_ewt.jsonnet with a shorter schedule: trains in about fifty minutes on one core.
// The published labeller reads only words, with 100 features of GloVe. This one reads 50 features and characters. Rare
// words keep their vectors of GloVe, like words that are not in the training data.
(import '../srl_ewt.jsonnet') {
  elmo+:: { gamma: 0.5, dropout: 0.2 },
  // A sentence counts once for each of its predicates.
  vocabulary+: { min_count: 10 },
  model+: {
    embedder+: {
      words+: { unknown_probability: 0.1 },
      characters: { embedding_size: 16, filters: 128, width: 3 },
    },
    encoder+: { hidden_size: 200, num_layers: 4 },
    dropout: 0.2,
  },
  data_loader: { batch_size: 32 },
  validation_data_loader: { batch_size: 128 },
  trainer+: {
    num_epochs: 14,
    patience: null,
    precision: 'auto',
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: { type: 'linear_decay', warmup_steps: 200 },
    moving_average: { decay: 0.999 },
  },
}
