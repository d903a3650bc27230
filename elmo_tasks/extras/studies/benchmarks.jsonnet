// The six tasks without and with ELMo, as in table 1 of Peters et al. (2018).
local tasks = import 'tasks.libsonnet';
local names = ['NER', 'SST-5', 'SNLI', 'SQuAD', 'SRL', 'coreference'];

{
  title: 'The six tasks, without and with ELMo',
  text: 'Table 1 of Peters et al. (2018). Data, sizes and biLM differ from the paper, so compare the error reductions.',
  seeds: [1, 2, 3],
  arms: std.flattenArrays([
    [
      { name: task + ', baseline', config: tasks[task].baseline, paper: tasks[task].paper[0] },
      { name: task + ', ELMo', config: tasks[task].config, baseline: task + ', baseline', paper: tasks[task].paper[1] },
    ]
    for task in names
  ]),
}
