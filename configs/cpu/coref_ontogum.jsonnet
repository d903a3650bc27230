// The resolver of ../coref_ontogum.jsonnet in a size, and with a schedule, that one core trains in about 25 minutes.
(import '../coref_ontogum.jsonnet') {
  model+: {
    embedder+: { characters+: { filters: 50 } },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100] },
    hidden_sizes: [100, 100],
    spans_per_word: 0.3,
    max_antecedents: 50,
  },
  trainer+: {
    num_epochs: 18,
    patience: null,
    learning_rate_scheduler: { type: 'linear_decay' },
    moving_average: { decay: 0.999 },
  },
}
