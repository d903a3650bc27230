// SQuAD v1.1: plain bidirectional attention flow (Seo et al. 2017) with the settings of AllenNLP's BiDAF, and ELMo at the input.
local data = std.extVar('ELMO_TASKS_DATA');
local encoder = { type: 'stacked_bilstm', hidden_sizes: [100] };

{
  // Null for the baseline without ELMo.
  elmo:: import 'elmo.libsonnet',

  dataset_reader: { type: 'squad' },
  train_data_path: data + '/squad/train-v1.1.json.xz',
  validation_data_path: data + '/squad/dev-v1.1.json',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'bidaf',
    embedder: {
      // AllenNLP uses 100 features of GloVe 6B.
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, trainable: false },
      characters: { embedding_size: 16, filters: 100, width: 5, dropout: 0.2 },
      elmo: $.elmo,
    },
    num_highway_layers: 2,
    encoder: encoder,
    modeling_encoder: encoder { hidden_sizes: [100, 100], dropout: 0.2 },
    end_encoder: encoder,
    dropout: 0.2,
    // AllenNLP has no limit. At most one gold answer in a hundred is longer.
    max_answer_length: 30,
  },
  data_loader: { batch_size: 40 },
  trainer: {
    num_epochs: 20,
    patience: 10,
    validation_metric: '+exact_match',
    optimizer: { type: 'adam', lr: 0.001, betas: [0.9, 0.9] },
    learning_rate_scheduler: { type: 'reduce_on_plateau', factor: 0.5, patience: 2 },
    grad_norm: 5.0,
  },
  random_seed: 1,
}
