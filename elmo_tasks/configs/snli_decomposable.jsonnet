// SNLI with decomposable attention (Parikh et al. 2016), with the settings of AllenNLP's model: no encoder, so that it is
// fast. The data and the rest are those of snli.jsonnet.
local layers = { hidden_sizes: [200, 200], dropout: 0.2 };
local end_token = '@@NULL@@';

(import 'snli.jsonnet') {
  local embedder = super.model.embedder,
  dataset_reader+: { end_token: end_token },
  model: {
    type: 'decomposable_attention',
    end_token: end_token,
    embedder: embedder,
    attend: layers,
    compare: layers,
    output: layers { hidden_sizes: [200] },
  },
  data_loader: { batch_size: 64 },
  trainer+: {
    num_epochs: 140,
    patience: 20,
    optimizer: { type: 'adagrad', lr: 0.01 },
    learning_rate_scheduler: { type: 'constant' },
    regularizers: if $.elmo == null then [] else [{ parameters: 'mix.*weights', l2: 0.001 }],
  },
}
