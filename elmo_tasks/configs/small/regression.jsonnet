// Texts with a number each, for a small table of your own: train.csv and dev.csv with the columns `text` and `score`.
(import 'text.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'regression' },
  trainer+: { validation_metric: '+pearson' },
}
