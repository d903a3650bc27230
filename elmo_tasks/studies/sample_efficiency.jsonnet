// How much training data ELMo saves: 0.1 % to 100 % of it, as in figure 1 of Peters et al. (2018).
local tasks = import 'tasks.libsonnet';
// A small share has few steps in an epoch, so it is read more often. All shares see as many epochs in both arms.
local point(share, epochs) = {
  share: share,
  changes: { trainer: { num_epochs: epochs, patience: 20, learning_rate_scheduler: { type: 'linear_decay' } } },
};

{
  title: 'Scores with a share of the training data',
  text: 'Figure 1 of Peters et al. (2018), on the development data. Each seed draws its own sample, the same for both arms.',
  seeds: [1, 2, 3],
  shares: [point(0.001, 200), point(0.01, 100), point(0.1, 40), point(0.3, 20), 1],
  arms: std.flattenArrays([
    local arm(name, config) = { name: task + ', ' + name, group: task, config: config, split: 'validation' };
    [
      arm('baseline', tasks[task].baseline),
      arm('ELMo', tasks[task].config) { baseline: task + ', baseline' },
    ]
    for task in ['SRL', 'SNLI']
  ]),
}
