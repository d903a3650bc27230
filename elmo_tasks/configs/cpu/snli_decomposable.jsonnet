// A smaller version of ../snli_decomposable.jsonnet with a shorter schedule: trains in a few minutes on a CPU, on the
// pairs of ./snli.jsonnet.
local cpu = import 'snli.jsonnet';

(import '../snli_decomposable.jsonnet') {
  elmo+:: cpu.elmo,
  train_data_path: cpu.train_data_path,
  model+: { embedder+: { words+: { trainable: true, unknown_probability: 0.05 } } },
  trainer+: {
    num_epochs: 9,
    patience: null,
    optimizer: { type: 'adam', lr: 0.001 },
    learning_rate_scheduler: { type: 'linear_decay' },
    moving_average: { decay: 0.999 },
  },
}
