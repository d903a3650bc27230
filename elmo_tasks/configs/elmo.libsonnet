// ELMo for all heads: the biLM in the package, with one mix at the input. To use another biLM, name the folder with its
// *options.json and *weights.hdf5 in the published layout: --set model.embedder.elmo.bilm=DIR
{
  bilm: 'default',
  // The initial gamma. With 1, ELMo's vectors are much longer than the word vectors: they outweigh them and saturate attention.
  gamma: 0.2,
  dropout: 0.5,
}
