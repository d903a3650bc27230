// Two more tasks for the tagger of named entities, which the paper does not have: parts of speech, and the predicates
// that semantic roles belong to.
local pair(task, config) = [
  { name: task + ', baseline', config: 'baselines/' + config },
  { name: task + ', ELMo', config: config, baseline: task + ', baseline' },
];

{
  title: 'Parts of speech and predicates, without and with ELMo',
  seeds: [1, 2, 3],
  arms: pair('parts of speech', 'pos_ewt') + pair('predicates', 'predicates_ewt'),
}
