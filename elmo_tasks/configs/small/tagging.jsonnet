// Spans in sentences, such as names, for a small table of your own: train.csv and dev.csv with the columns `tokens` and `tags`, a token
// on each line and an empty line after each sentence.
local tag_scheme = 'BIOUL';

(import 'small.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'tagging', tag_scheme: tag_scheme },
  elmo+:: { mixes: ['input', 'output'] },
  model: {
    type: 'crf_tagger',
    tag_scheme: tag_scheme,
    embedder: $.embedder,
    encoder: { type: 'stacked_bilstm', hidden_sizes: [100], dropout: 0.3 },
    dropout: 0.3,
  },
  data_loader+: { min_batches: 60 },
  trainer+: { validation_metric: '+f1', optimizer: { type: 'adam', lr: 0.005 } },
}
