// ELMo as the heads take it: the biLM that comes with the package, with one mix at the input. Another biLM is the folder
// of its *options.json and *weights.hdf5 in the published layout: --set model.embedder.elmo.bilm=DIR
{
  bilm: 'default',
  dropout: 0.5,
}
