// Texts with a label each, for a small table of your own: train.csv and dev.csv with the columns `text` and `label`.
(import 'small.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'classification' },
  model: {
    type: 'bcn',
    embedder: $.embedder,
    embedding_dropout: 0.3,
    pre_encoder: { hidden_sizes: [100], dropout: 0.2 },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [50] },
    integrator: { type: 'stacked_bilstm', hidden_sizes: [50] },
    integrator_dropout: 0.2,
    output: { hidden_sizes: [100], dropout: 0.2 },
  },
  trainer+: { validation_metric: '+accuracy' },
}
