// Texts with a label each, for a small table of your own: train.csv and dev.csv with the columns `text` and `label`.
(import 'text.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'classification' },
  model+: { embedder: $.vectors },
  trainer+: { validation_metric: '+accuracy' },
}
