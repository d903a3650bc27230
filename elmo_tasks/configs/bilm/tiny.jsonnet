// A tiny biLM for trying things out: takes minutes on a CPU. The text is $ELMO_TASKS_TEXT, a file or a glob pattern.
{
  bilm: 'tiny',
  corpus: { paths: [std.extVar('ELMO_TASKS_TEXT')] },
  vocabulary_size: 20000,
  softmax: { type: 'sampled', num_samples: 1024 },
  trainer: { num_epochs: 3, batch_size: 32 },
}
