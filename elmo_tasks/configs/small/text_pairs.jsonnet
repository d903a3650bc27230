// Pairs of texts with a label each, for a small table of your own: train.csv and dev.csv with the columns `premise`, `hypothesis` and
// `label`. A logistic regression compares each token with the most similar one of the other text, by the layer of the biLM that does
// not depend on the context; `cpu/snli` has layers that learn to compare, for tens of thousands of pairs.
(import 'linear.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'text_pairs' },
  elmo+:: { layers: [0] },
}
