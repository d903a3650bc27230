// Texts with a label each, for a small table of your own: train.csv and dev.csv with the columns `text` and `label`. A logistic
// regression on the means of the tokens' vectors; `cpu/sst5` has an encoder, for thousands of texts.
(import 'linear.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'classification' },
}
