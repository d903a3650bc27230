// Which layers of the biLM help: none, only the last one, or all of them, as in table 2 of Peters et al. (2018).
local tasks = import 'tasks.libsonnet';
local penalty(l2) = { trainer: { regularizers: [{ parameters: 'mix.*weights', l2: l2 }] } };

{
  title: 'Only the last layer, or a mix of all layers',
  text: 'Table 2 of Peters et al. (2018), on the development data. λ = 1 keeps the weights of the layers nearly equal.',
  seeds: [1, 2, 3],
  arms: std.flattenArrays([
    local arm(variant, paper) = {
      name: task + ', ' + variant,
      group: task,
      config: tasks[task].config,
      baseline: task + ', baseline',
      split: 'validation',
      paper: paper,
    };
    local paper = tasks[task].layers;
    [
      arm('baseline', paper.none) { config: tasks[task].baseline, baseline: null },
      arm('last layer', paper.last) { changes: { model: { embedder: { elmo: { layers: [2] } } } } },
      arm('all layers, λ = 1', paper.equal) { changes: penalty(1) },
      arm('all layers, λ = 0.001', paper.learned) { changes: penalty(0.001) },
    ]
    for task in ['SQuAD', 'SNLI', 'SRL']
  ]),
}
