// The six tasks without and with ELMo, with the data and the settings of Peters et al. (2018).
local study = import 'benchmarks.jsonnet';
local renamed(name, pairs) = std.foldl(function(text, pair) std.strReplace(text, pair[0], pair[1]), pairs, name);
local published = [['cpu/', ''], ['srl_ewt', 'srl_conll12'], ['coref_ontogum', 'coref_conll12']];
// Over five seeds; the paper gives no others.
local deviations = { 'NER, ELMo': 0.10, 'SST-5, ELMo': 0.5, 'SNLI, ELMo': 0.17 };

study {
  title: 'The six tasks, without and with ELMo, on the data of the paper',
  text: 'Table 1 of Peters et al. (2018). Scores and expected ranges are those of the biLM with 93.6 million parameters ' +
        'and of larger word vectors: with the biLM in the package, scores with ELMo are below.',
  arms: [
    arm { config: renamed(super.config, published), paper_std: std.get(deviations, arm.name) }
    for arm in study.arms
  ],
}
