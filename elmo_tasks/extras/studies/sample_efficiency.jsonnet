// How much training data ELMo saves: 0.1 % to 100 % of it, as in figure 1 of Peters et al. (2018).
local tasks = import 'tasks.libsonnet';
// A small share has few steps in an epoch, so it is read more often and in smaller batches. Both arms train alike.
local point(share, epochs, batch_size) = {
  share: share,
  changes: {
    data_loader: { batch_size: batch_size },
    trainer: { num_epochs: epochs, patience: null, learning_rate_scheduler: { type: 'linear_decay' } },
  },
};

{
  title: 'Scores with a share of the training data',
  text: 'Figure 1 of Peters et al. (2018), on the development data. Each seed draws its own sample, the same for both arms.',
  seeds: [1, 2, 3],
  shares: [
    point(0.001, 40, 4),
    point(0.01, 30, 8),
    point(0.03, 25, 8),
    point(0.1, 20, 16),
    point(0.3, 15, 32),
    1,
  ],
  arms: std.flattenArrays([
    local arm(name, config) = { name: task + ', ' + name, group: task, config: config, split: 'validation' };
    [
      arm('baseline', tasks[task].baseline),
      arm('ELMo', tasks[task].config) { baseline: task + ', baseline' },
    ]
    for task in ['SRL', 'SNLI']
  ]),
}
