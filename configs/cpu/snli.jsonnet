// ESIM of ../snli.jsonnet in a size, and with a schedule, that a processor trains in some ten minutes on a part of the
// training data: 21,605 pairs, raw, while the dev and test files at hand are tokenized.
local data = std.extVar('ELMO_TASKS_DATA');

(import '../snli.jsonnet') {
  train_data_path: data + '/snli/snli_1.0_train_subset.jsonl',
  model+: {
    embedder+: { words+: { trainable: true, unknown_probability: 0.05 } },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [150], dropout: 0.3 },
    alignment_dropout: 0.3,
    projection: { hidden_sizes: [150] },
    composition: { type: 'stacked_bilstm', hidden_sizes: [150], dropout: 0.3 },
    dropout: 0.3,
    output: { hidden_sizes: [150], dropout: 0.3 },
  },
  trainer+: {
    num_epochs: 9,
    patience: null,
    optimizer: { type: 'adam', lr: 0.001 },
    learning_rate_scheduler: { type: 'linear_decay' },
    moving_average: { decay: 0.999 },
  },
}
