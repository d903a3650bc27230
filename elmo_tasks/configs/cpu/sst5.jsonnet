// A smaller version of ../sst5.jsonnet with a shorter schedule: trains in about eight minutes of one core.
(import '../sst5.jsonnet') {
  elmo+:: { dropout: 0.3 },
  model+: {
    embedder+: { words+: { trainable: true, unknown_probability: 0.05 } },
    embedding_dropout: 0.3,
    pre_encoder: { hidden_sizes: [100], dropout: 0.25 },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100] },
    integrator: { type: 'stacked_bilstm', hidden_sizes: [100] },
    integrator_dropout: 0.25,
    output: { hidden_sizes: [200, 100], dropout: 0.25 },
  },
  data_loader: { batch_size: 64 },
  trainer+: {
    num_epochs: 4,
    patience: null,
    optimizer: { type: 'adam', lr: 0.001 },
    learning_rate_scheduler: { type: 'linear_decay' },
    moving_average: { decay: 0.999 },
  },
}
