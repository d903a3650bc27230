// The six tasks without and with ELMo, with the data and the settings of Peters et al. (2018).
local study = import 'benchmarks.jsonnet';
local renamed(name, pairs) = std.foldl(function(text, pair) std.strReplace(text, pair[0], pair[1]), pairs, name);
local published = [['cpu/', ''], ['srl_ewt', 'srl_conll12'], ['coref_ontogum', 'coref_conll12']];

study {
  title: 'The six tasks, without and with ELMo, on the data of the paper',
  text: 'Table 1 of Peters et al. (2018). The biLM and the word vectors are smaller than in the paper.',
  arms: [arm { config: renamed(super.config, published) } for arm in study.arms],
}
