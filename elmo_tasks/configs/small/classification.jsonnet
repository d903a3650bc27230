// Texts with a label each, for a small table of your own: train.csv and dev.csv with the columns `text` and `label`. A linear layer on the
// mean of ELMo's vectors: with few examples it is better than layers that learn to read, which pay from about 1,000 examples on:
//   --set 'model.encoder={"type": "stacked_bilstm", "hidden_sizes": [100]}' --set model.pooling=attention
(import 'small.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'classification' },
  model: {
    type: 'text_classifier',
    embedder: $.vectors,
    pooling: 'mean',
    dropout: 0.2,
  },
  trainer+: { validation_metric: '+accuracy' },
}
