// Pairs of texts with a label each, for a small table of your own: train.csv and dev.csv with the columns `premise`, `hypothesis` and
// `label`. A linear layer reads the means of both texts' vectors; `cpu/snli` has layers that compare words, for thousands of pairs.
(import 'small.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'text_pairs' },
  model: { type: 'text_classifier', embedder: $.vectors, pooling: 'mean', dropout: 0.2 },
  trainer+: { validation_metric: '+accuracy', optimizer: { type: 'adam', lr: 0.003 } },
}
