// The resolver of ../coref_ontogum.jsonnet in a size, and with a schedule, that one core trains in some 12 minutes.
(import '../coref_ontogum.jsonnet') {
  model+: {
    embedder+: { characters+: { filters: 50 } },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100] },
    hidden_sizes: [100, 100],
    spans_per_word: 0.3,
    max_antecedents: 50,
    lexical_dropout: 0.3,
    // Shorter windows make more steps of the same time, and steps are what this little data lacks.
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
