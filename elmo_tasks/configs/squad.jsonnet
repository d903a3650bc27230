// Reading comprehension, SQuAD v1.1: the reader of Peters et al. (2018), section 4 and supplement. It is the bidirectional
// attention flow with self-attention of Clark and Gardner (2018).
// The data is in $ELMO_TASKS_DATA, laid out as docs/data_sets.md says.
local data = std.extVar('ELMO_TASKS_DATA');
local encoder = { type: 'stacked_bigru', hidden_sizes: [90], dropout: 0.2 };

{
  // Null for the baseline without ELMo. One mix at the input of the first encoder and one at its output.
  // The cached layers of all texts, 3.9 million tokens, need 5 GB of disk space with the biLM in the package, and 20.2 GB with
  // a biLM of the original size. The latter needs a larger limit: add layer_cache: { max_gigabytes: 40 }.
  elmo:: (import 'elmo.libsonnet') { mixes: ['input', 'output'] },

  dataset_reader: { type: 'squad' },
  train_data_path: data + '/squad/train-v1.1.json.xz',
  // The test data is not public: reported scores are those of the best epoch on the development data.
  validation_data_path: data + '/squad/dev-v1.1.json',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'bidaf_self_attention',
    embedder: {
      // The paper uses 300 features of GloVe 840B, which is cased: set the file, the size, and
      // vocabulary.lowercase_words to false.
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, trainable: false },
      characters: { embedding_size: 20, filters: 100, width: 5, dropout: 0.2 },
      elmo: $.elmo,
    },
    encoder: encoder,
    matched_size: 180,
    self_attention_encoder: encoder,
    // The dropout below is applied to their inputs.
    start_encoder: encoder { dropout: 0.0 },
    end_encoder: encoder { dropout: 0.0 },
    dropout: 0.2,
    max_answer_length: 17,
  },
  data_loader: { batch_size: 45 },
  trainer: {
    num_epochs: 24,
    validation_metric: '+f1',
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95 },
    moving_average: { decay: 0.999 },
  },
  random_seed: 1,
}
