// Part-of-speech tagging, Penn Treebank tags of UD English-EWT: a smaller version of the tagger of ner_conll03.jsonnet, with
// tags that do not form spans. The data is in $ELMO_TASKS_DATA, laid out as docs/data_sets.md says.
local data = std.extVar('ELMO_TASKS_DATA');

{
  // Null for the baseline without ELMo.
  elmo:: import 'elmo.libsonnet',

  // Set tag_column to 'upos' for universal tags.
  dataset_reader: { type: 'conllu', tag_column: 'xpos' },
  train_data_path: data + '/pos_ud_ewt/en_ewt-ud-train.conllu.xz',
  validation_data_path: data + '/pos_ud_ewt/en_ewt-ud-dev.conllu',
  test_data_path: data + '/pos_ud_ewt/en_ewt-ud-test.conllu',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'crf_tagger',
    tag_scheme: null,
    embedder: {
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, unknown_probability: 0.05 },
      characters: { embedding_size: 16, filters: 64, width: 3 },
      elmo: $.elmo,
    },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100], dropout: 0.5 },
    dropout: 0.5,
  },
  data_loader: { batch_size: 32 },
  validation_data_loader: { batch_size: 64 },
  trainer: {
    num_epochs: 10,
    validation_metric: '+accuracy',
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: { type: 'linear_decay' },
    grad_norm: 5.0,
    moving_average: { decay: 0.999 },
  },
  random_seed: 1,
}
