// The labeller of ../srl_ewt.jsonnet in a size, and with a schedule, that one core trains in about twenty-five minutes.
(import '../srl_ewt.jsonnet') {
  elmo+:: { gamma: 0.5, dropout: 0.2 },
  model+: {
    encoder+: { hidden_size: 200, num_layers: 4 },
    dropout: 0.2,
  },
  data_loader: { batch_size: 32 },
  validation_data_loader: { batch_size: 128 },
  trainer+: {
    num_epochs: 10,
    patience: null,
    precision: 'bfloat16',
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: { type: 'linear_decay', warmup_steps: 200 },
    moving_average: { decay: 0.999 },
  },
}
