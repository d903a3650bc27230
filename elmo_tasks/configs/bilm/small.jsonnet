// The default biLM: the paper's small architecture, trained on Wikipedia and books. The texts are in $ELMO_TASKS_DATA/lm.
{
  bilm: 'small',
  corpus: { paths: [std.extVar('ELMO_TASKS_DATA') + '/lm/*.txt.xz'], held_out: 0.003, seed: 3 },
  vocabulary_size: 50000,
}
