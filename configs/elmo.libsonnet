// ELMo as the heads take it: the biLM in the folder $ELMO_TASKS_BILM, one mix at the input.
{
  bilm: std.extVar('ELMO_TASKS_BILM'),
  dropout: 0.5,
}
