// ELMo as the heads take it: the biLM in the folder $ELMO_TASKS_BILM, which holds *options.json and *weights.hdf5 in the
// published layout, with one mix at the input. Any other biLM: --set model.embedder.elmo.bilm=DIR
{
  bilm: std.extVar('ELMO_TASKS_BILM'),
  dropout: 0.5,
}
