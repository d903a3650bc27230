// The six tasks by name: the config, the scores that Peters et al. (2018) report in table 1 and, for three of them, on
// the development data in tables 2 and 3. The configs are those for CPUs where there are any.
local cpu(name, task) = task { config: 'cpu/' + name, baseline: 'cpu/baselines/' + name };

{
  NER: { config: 'ner_conll03', baseline: 'baselines/ner_conll03', paper: [90.15, 92.22] },
  'SST-5': cpu('sst5', { paper: [51.4, 54.7] }),
  SNLI: cpu('snli', {
    paper: [88.0, 88.7],
    layers: { none: 88.1, last: 89.1, equal: 89.3, learned: 89.5 },
    places: { input: 88.9, both: 89.5, output: 88.7 },
  }),
  SQuAD: cpu('squad', {
    paper: [81.1, 85.8],
    layers: { none: 80.8, last: 84.7, equal: 85.0, learned: 85.2 },
    places: { input: 85.1, both: 85.6, output: 84.8 },
  }),
  SRL: cpu('srl_ewt', {
    paper: [81.4, 84.6],
    layers: { none: 81.6, last: 84.1, equal: 84.6, learned: 84.8 },
    places: { input: 84.7, both: 84.3, output: 80.9 },
  }),
  coreference: cpu('coref_ontogum', { paper: [67.2, 70.4] }),
}
