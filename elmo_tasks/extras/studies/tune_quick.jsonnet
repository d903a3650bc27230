// A small search on data that `elmo-tasks sample-data runs/quick-data --sentences 300,60,60` writes.
// It takes about a minute on one core. The data is small, so differences can be chance.
{
  title: 'A quick search, on sample data',
  text: 'The data is small, so differences can be chance.',
  variables: { ELMO_TASKS_DATA: 'runs/quick-data' },
  config: 'ner_conll03',
  changes: { trainer: { num_epochs: 3, moving_average: null }, data_loader: { batch_size: 16 } },
  space: {
    'trainer.optimizer.lr': { low: 0.0003, high: 0.01, log: true },
    'model.embedder.elmo.gamma': { low: 0.1, high: 1.0 },
    'model.embedder.elmo.mixes': { choices: [['input'], ['output'], ['input', 'output']] },
    'model.encoder.hidden_sizes.0': { low: 50, high: 150, step: 50 },
  },
  trials: 15,
  pruning: { startup_trials: 3, warmup_epochs: 1 },
}
