// A smaller version of ../snli.jsonnet with a shorter schedule: trains in less than half an hour on one core, on
// 21,605 pairs of the training data. These are raw text, while the dev and test files are tokenized.
local data = std.extVar('ELMO_TASKS_DATA');

(import '../snli.jsonnet') {
  elmo+:: { gamma: 0.1, dropout: 0.3 },
  train_data_path: data + '/snli/snli_1.0_train_subset.jsonl',
  model+: {
    embedder+: { words+: { trainable: true, unknown_probability: 0.05 } },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [150], dropout: 0.2 },
    alignment_dropout: 0.2,
    projection: { hidden_sizes: [150] },
    composition: { type: 'stacked_bilstm', hidden_sizes: [150], dropout: 0.2 },
    dropout: 0.2,
    output: { hidden_sizes: [150], dropout: 0.2 },
  },
  trainer+: {
    num_epochs: 9,
    patience: null,
    optimizer: { type: 'adam', lr: 0.001 },
    learning_rate_scheduler: { type: 'linear_decay' },
    moving_average: { decay: 0.999 },
    // No penalty on the weight matrices: with this few pairs and epochs it makes the model worse.
    regularizers: if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.001 }],
  },
}
