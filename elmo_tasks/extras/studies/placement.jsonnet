// Where ELMo is added: at the input of the head, at its output or at both, as in table 3 of Peters et al. (2018).
local tasks = import 'tasks.libsonnet';

{
  title: 'ELMo at the input, at the output or at both',
  text: 'Table 3 of Peters et al. (2018), on the development data. The input is what the others are compared with.',
  seeds: [1, 2, 3],
  arms: std.flattenArrays([
    local arm(place, mixes, paper) = {
      name: task + ', ' + place,
      group: task,
      config: tasks[task].config,
      changes: { model: { embedder: { elmo: { mixes: mixes } } } },
      baseline: task + ', input',
      split: 'validation',
      paper: paper,
    };
    local paper = tasks[task].places;
    [
      arm('input', ['input'], paper.input) { baseline: null },
      arm('both', ['input', 'output'], paper.both),
      arm('output', ['output'], paper.output),
    ]
    for task in ['SQuAD', 'SNLI', 'SRL']
  ]),
}
