// Sentiment in five classes: where gamma starts, lambda, ELMo's dropout and the learning rate, with the config for CPUs.
// It takes up to a quarter of an hour for each trial on one core.
{
  title: "SST-5: ELMo's settings and the learning rate",
  config: 'cpu/sst5',
  space: {
    'model.embedder.elmo.gamma': { low: 0.05, high: 1.0, log: true },
    // The paper's lambda, section 3.2: 1 keeps the weights of the layers near their mean, 0.001 lets them differ.
    'trainer.regularizers.0.l2': { choices: [0.0, 0.001, 0.01, 0.1, 1.0] },
    'model.embedder.elmo.dropout': { low: 0.0, high: 0.6, step: 0.1 },
    'trainer.optimizer.lr': { low: 0.0002, high: 0.005, log: true },
  },
  trials: 30,
}
