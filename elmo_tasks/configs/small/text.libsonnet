// The plain classifier for small data: what it predicts is the task of the reader.
(import 'small.libsonnet') {
  model: {
    type: 'text_classifier',
    embedder: $.embedder,
    embedding_dropout: 0.3,
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100] },
    pooling: 'attention',
    dropout: 0.2,
  },
}
