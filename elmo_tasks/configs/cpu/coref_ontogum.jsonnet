// A smaller version of ../coref_ontogum.jsonnet with a shorter schedule: trains in about 25 minutes of one core.
(import '../coref_ontogum.jsonnet') {
  model+: {
    embedder+: { characters+: { filters: 50 } },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100] },
    hidden_sizes: [100, 100],
    spans_per_word: 0.3,
    max_antecedents: 50,
    lexical_dropout: 0.3,
    // Shorter documents make steps faster. This small data set needs more steps.
    max_training_sentences: 25,
  },
  trainer+: {
    num_epochs: 24,
    patience: null,
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: { type: 'linear_decay' },
    moving_average: { decay: 0.999 },
  },
}
