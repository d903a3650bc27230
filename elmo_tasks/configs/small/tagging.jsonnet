// Spans in sentences, such as names, for a small table of your own: train.csv and dev.csv with the columns `tokens` and `tags`, a token
// on each line and an empty line after each sentence. A linear layer and a conditional random field read two mixes of ELMo's layers; an
// encoder pays from about 1,000 examples on:
//   --set 'model.encoder={"type": "stacked_bilstm", "hidden_sizes": [100], "dropout": 0.3}' --set trainer.optimizer.lr=0.003
local tag_scheme = 'BIOUL';

(import 'small.libsonnet') {
  dataset_reader: { type: 'delimited', task: 'tagging', tag_scheme: tag_scheme },
  elmo+: { mixes: ['input', 'output'] },
  model: {
    type: 'crf_tagger',
    tag_scheme: tag_scheme,
    embedder: $.vectors,
    encoder: { type: 'pass_through' },
    dropout: 0.3,
  },
  trainer+: { validation_metric: '+f1', optimizer: { type: 'adam', lr: 0.01 } },
}
