// The default biLM: the paper's small architecture, trained on Wikipedia and books. The texts are in $ELMO_TASKS_DATA/lm.
// Without dropout, because the text is read about once. Many small steps learn more of it than few large ones.
{
  bilm: 'small',
  corpus: { paths: [std.extVar('ELMO_TASKS_DATA') + '/lm/*.txt.xz'], held_out: 0.003, seed: 3 },
  vocabulary_size: 50000,
  dropout: 0.0,
  half_precision: true,
  trainer: {
    batch_size: 64,
    optimizer: { type: 'adam', lr: 0.003 },
    learning_rate_scheduler: { type: 'linear_decay', warmup_steps: 400, decay_share: 0.4 },
    grad_norm: 1.0,
  },
}
