// Questions about Wikipedia's paragraphs, SQuAD v1.1: the reader of Peters et al. (2018), section 4 and supplement, which is
// that of Clark and Gardner (2018): bidirectional attention flow with self-attention.
// The folder of the data, laid out as the README says, is $ELMO_TASKS_DATA.
local data = std.extVar('ELMO_TASKS_DATA');
local encoder = { type: 'stacked_bigru', hidden_sizes: [90], dropout: 0.2 };

{
  // Null for the baseline without ELMo. One mix at the input of the first encoder and one at its output.
  // The layers of all texts, 3.9 million tokens, take 5 GB on disk with the biLM that comes with the package, and 20.2 GB with
  // one of the original size, for which the cache's bound is too small: add layer_cache: { max_gigabytes: 40 }.
  elmo:: (import 'elmo.libsonnet') { mixes: ['input', 'output'] },

  dataset_reader: { type: 'squad' },
  train_data_path: data + '/squad/train-v1.1.json.xz',
  // The test data is not public: what is reported of SQuAD is the best epoch on the development data.
  validation_data_path: data + '/squad/dev-v1.1.json',
  vocabulary: { lowercase_words: true },
  model: {
    type: 'bidaf_self_attention',
    embedder: {
      // The paper has vectors of 300 numbers, from GloVe 840B with upper and lower case: set file and size, and
      // vocabulary.lowercase_words to false.
      words: { vectors: data + '/glove/glove.6B.50d.txt.xz', size: 50, trainable: false },
      characters: { embedding_size: 20, filters: 100, width: 5, dropout: 0.2 },
      elmo: $.elmo,
    },
    encoder: encoder,
    matched_size: 180,
    self_attention_encoder: encoder,
    // What they read comes with the dropout below.
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
