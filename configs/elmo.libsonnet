// ELMo as the heads take it: the biLM that comes with the package, with one mix at the input. Another biLM is the folder
// of its *options.json and *weights.hdf5 in the published layout: --set model.embedder.elmo.bilm=DIR
{
  bilm: 'default',
  // Where gamma starts. From 1, ELMo's vectors, longer than the words', drown them and saturate attention.
  gamma: 0.2,
  dropout: 0.5,
}
