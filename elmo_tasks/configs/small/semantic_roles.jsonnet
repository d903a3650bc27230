// Semantic roles, for small data of your own: train.jsonl and dev.jsonl, whose lines have `tokens`, `predicate` and `tags`.
(import 'small.libsonnet') {
  dataset_reader: { type: 'jsonl', task: 'semantic_roles' },
  train_data_path: 'train.jsonl',
  validation_data_path: 'dev.jsonl',
  model: {
    type: 'srl',
    embedder: $.embedder,
    encoder: { type: 'alternating_lstm', hidden_size: 100, num_layers: 2, dropout: 0.2 },
    predicate_size: 50,
    dropout: 0.2,
  },
  trainer+: { validation_metric: '+f1' },
}
