// Pairs of texts with a number each, for a small table of your own: train.csv and dev.csv with the columns `premise`, `hypothesis` and
// `score`.
(import 'text.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'pair_regression' },
  trainer+: { validation_metric: '+pearson' },
}
