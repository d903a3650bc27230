// A tagger that finds the predicates for srl_conll12.jsonnet, trained on the same files.
// Raw text needs a run of both: elmo-tasks predict runs/srl_conll12 INPUT --predicates runs/predicates_conll12
local srl = import 'srl_conll12.jsonnet';

{
  // Null for the tagger without ELMo.
  elmo:: import 'elmo.libsonnet',

  dataset_reader: { type: 'predicates', source: srl.dataset_reader },
  train_data_path: srl.train_data_path,
  validation_data_path: srl.validation_data_path,
  test_data_path: srl.test_data_path,
  vocabulary: { lowercase_words: true },
  model: {
    type: 'crf_tagger',
    tag_scheme: 'IOB2',
    embedder: {
      words: { vectors: std.extVar('ELMO_TASKS_DATA') + '/glove/glove.6B.50d.txt.xz', size: 50, unknown_probability: 0.05 },
      characters: { embedding_size: 16, filters: 64, width: 3 },
      elmo: $.elmo,
    },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100], dropout: 0.5 },
    dropout: 0.5,
  },
  data_loader: { batch_size: 32 },
  validation_data_loader: { batch_size: 64 },
  trainer: {
    num_epochs: 8,
    validation_metric: '+f1',
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: { type: 'linear_decay' },
    grad_norm: 5.0,
    moving_average: { decay: 0.999 },
  },
  random_seed: 1,
}
