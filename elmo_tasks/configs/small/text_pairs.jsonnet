// Pairs of texts with a label each, for a small table of your own: train.csv and dev.csv with the columns `premise`, `hypothesis` and
// `label`.
(import 'small.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'text_pairs' },
  model: {
    type: 'esim',
    embedder: $.embedder,
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100], dropout: 0.2 },
    alignment_dropout: 0.2,
    projection: { hidden_sizes: [100] },
    composition: { type: 'stacked_bilstm', hidden_sizes: [100], dropout: 0.2 },
    dropout: 0.2,
    output: { hidden_sizes: [100], dropout: 0.2 },
  },
  trainer+: { validation_metric: '+accuracy' },
}
