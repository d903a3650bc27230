// Questions about passages, for small data of your own: train.jsonl and dev.jsonl, whose lines have `question`, `passage` and `answers`.
local encoder = { type: 'stacked_bilstm', hidden_sizes: [50], dropout: 0.2 };

(import 'small.libsonnet') {
  dataset_reader: { type: 'jsonl', task: 'reading' },
  train_data_path: 'train.jsonl',
  validation_data_path: 'dev.jsonl',
  model: {
    type: 'bidaf',
    embedder: $.embedder,
    encoder: encoder,
    modeling_encoder: encoder,
    end_encoder: encoder,
    dropout: 0.2,
    max_answer_length: 30,
  },
  trainer+: { validation_metric: '+f1' },
}
