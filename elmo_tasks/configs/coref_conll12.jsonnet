// Coreference, CoNLL-2012 English (OntoNotes 5): the end-to-end span model of Lee et al. (2017), as in Peters et al. (2018),
// section 4. The data is in $ELMO_TASKS_DATA; the three folders below contain *gold_conll files.
local data = std.extVar('ELMO_TASKS_DATA');

{
  // Null for the baseline without ELMo. The published dropout of 0.5 on ELMo is the lexical dropout below, which applies to
  // all inputs.
  elmo:: (import 'elmo.libsonnet') { dropout: 0.0 },

  dataset_reader: { type: 'coref_conll2012' },
  train_data_path: data + '/conll-2012/v4/data/train/data/english',
  validation_data_path: data + '/conll-2012/v4/data/development/data/english',
  test_data_path: data + '/conll-2012/v4/data/test/data/english',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'coref',
    embedder: {
      // The paper uses 300 features of GloVe 840B, which is cased, and the 50 of Turian et al.: set the file, the size, and
      // vocabulary.lowercase_words to false.
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, trainable: false },
      // The paper uses 50 filters of each of the widths 3, 4 and 5.
      characters: { embedding_size: 8, filters: 150, width: 4 },
      elmo: $.elmo,
    },
    encoder: { type: 'stacked_bilstm', hidden_sizes: [200] },
    lexical_dropout: 0.5,
    dropout: 0.2,
    hidden_sizes: [150, 150],
    feature_size: 20,
    max_span_width: 10,
    spans_per_word: 0.4,
    max_antecedents: 100,
    max_training_sentences: 50,
    // Not in the paper: hiding the genre of some documents teaches the model to read texts without a genre.
    unknown_genre_probability: 0.1,
  },
  data_loader: { batch_size: 1 },
  trainer: {
    num_epochs: 150,
    patience: 20,
    validation_metric: '+conll_f1',
    optimizer: { type: 'adam', lr: 0.001 },
    // The paper's decay of 0.1 % every 100 steps, for an epoch of 2,802 documents.
    learning_rate_scheduler: { type: 'exponential', gamma: 0.972 },
    grad_norm: 5.0,
  },
  random_seed: 1,
}
