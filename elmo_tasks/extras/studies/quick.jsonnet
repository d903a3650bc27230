// Parts of five studies of this folder, on data that `elmo-tasks sample-data runs/quick-data --sentences 300,60,60` writes.
// It takes a few minutes on two cores. The data is a small part of each data set, so the scores are low.

// Coreference is learned from whole documents.
local batch_sizes = { coref_ontogum: 1 };
local batch_size(arm) = std.get(batch_sizes, std.reverse(std.split(arm.config, '/'))[0]);

local part(title, study, tasks) = [
  arm {
    name: title + ': ' + super.name,
    group: title,
    paper:: null,
    [if std.get(arm, 'baseline') != null then 'baseline']: title + ': ' + super.baseline,
    [if batch_size(arm) != null then 'changes']: { data_loader: { batch_size: batch_size(arm) } },
  }
  for arm in study.arms
  if std.member(tasks, std.splitLimit(arm.name, ', ', 1)[0])
];

{
  title: 'A quick look at all studies, on sample data',
  text: 'The data is a small part of each data set, so the scores are low and differences can be chance.',
  variables: { ELMO_TASKS_DATA: 'runs/quick-data' },
  seeds: [1, 2],
  changes: { trainer: { num_epochs: 4, moving_average: null }, data_loader: { batch_size: 16 } },
  arms: part('benchmarks', import 'benchmarks.jsonnet', ['NER', 'SST-5', 'SNLI', 'SQuAD', 'SRL', 'coreference']) +
        part('layers', import 'layers.jsonnet', ['SNLI']) +
        part('placement', import 'placement.jsonnet', ['SNLI']) +
        [arm { shares: [0.1, 0.3, 1] } for arm in part('shares', import 'sample_efficiency.jsonnet', ['SNLI'])] +
        part('precision', import 'precision.jsonnet', ['SNLI']),
}
