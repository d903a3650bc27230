// Texts with a set of labels each, for a small table of your own: train.csv and dev.csv with the columns `text` and `labels`.
(import 'text.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'multi_label' },
  trainer+: { validation_metric: '+micro_f1' },
}
