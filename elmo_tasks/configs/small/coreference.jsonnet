// Coreference, for small data of your own: train.jsonl and dev.jsonl, whose lines are documents with `sentences` and `clusters`.
(import 'small.libsonnet') {
  dataset_reader: { type: 'jsonl', task: 'coreference' },
  train_data_path: 'train.jsonl',
  validation_data_path: 'dev.jsonl',
  model: {
    type: 'coref',
    embedder: $.embedder,
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100] },
    lexical_dropout: 0.2,
    dropout: 0.2,
    hidden_sizes: [100],
    feature_size: 20,
    max_span_width: 10,
    spans_per_word: 0.4,
    max_antecedents: 50,
    max_training_sentences: 25,
  },
  data_loader+: { batch_size: 1 },
  validation_data_loader: { batch_size: 1 },
  trainer+: { validation_metric: '+conll_f1' },
}
