// The largest biLM of Peters et al. (2018), with the published recipe (section 3.4, and bilm-tf's settings): 93.6 million
// parameters, ten epochs over the One Billion Word benchmark (Chelba et al. 2014). It needs GPUs. bilm-tf used three:
//   torchrun --nproc-per-node 3 -m elmo_tasks pretrain bilm/original
// $ELMO_TASKS_DATA/lm_1b has the benchmark's training files, and its words: <S>, </S>, <UNK>, then the most frequent first.
local data = std.extVar('ELMO_TASKS_DATA') + '/lm_1b';

{
  bilm: 'original',
  corpus: {
    paths: [data + '/training-monolingual.tokenized.shuffled/*'],
    tokenized: true,
    vocabulary: data + '/vocabulary.txt',
    held_out: 0.001,
  },
  softmax: { type: 'sampled', num_samples: 8192 },
  dropout: 0.1,
  trainer: {
    num_epochs: 10,
    batch_size: 3 * 128,
    unroll_steps: 20,
    reset_share: 0,
    // bilm-tf multiplies the mean loss by the 20 steps. Here it stays a mean: what bilm-tf's gradients are compared with,
    // Adagrad's initial sum of squares of 1 and the norm of 10, is divided by 20 squared and by 20 instead.
    optimizer: { type: 'adagrad', lr: 0.2, initial_accumulator_value: 1 / (20 * 20) },
    learning_rate_scheduler: { type: 'constant' },
    grad_norm: 10 / 20,
  },
}
