// The linear classifier for small data. It is fitted in one go: what `trainer` says about steps and epochs has no effect.
(import 'small.libsonnet') {
  elmo+:: { dropout: 0.0 },
  model: { type: 'linear_classifier', embedder: { elmo: $.elmo } },
  folds: 10,
  trainer+: { validation_metric: '+accuracy', regularizers: [] },
}
