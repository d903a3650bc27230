// What heads read besides words and characters: nothing, ELMo, a frozen transformer, or both. The transformer's folder, or
// hub:NAME, is in $ELMO_TASKS_TRANSFORMER.
local tasks = import 'tasks.libsonnet';
// Where gamma starts and the penalty on the weights of the mix are those of ELMo in the task's config.
local settings = { NER: { gamma: 0.2, l2: 0.1 }, 'SST-5': { gamma: 0.2, l2: 0.001 }, SNLI: { gamma: 0.1, l2: 0.001 } };

{
  title: 'GloVe, ELMo and a frozen transformer',
  text: 'The same heads with the same settings. Both models are frozen, only the mixes of their layers are learned, and each ' +
        'has one mix, at the input.',
  seeds: [1, 2, 3],
  // Few examples show what pretraining gives, and all of them what is left of it.
  shares: [0.07, 1.0],
  arms: std.flattenArrays([
    local set = settings[task];
    local elmo = { elmo: { mixes: ['input'] } };
    local transformer = {
      transformer: { model: std.extVar('ELMO_TASKS_TRANSFORMER'), gamma: set.gamma, dropout: 0.3 },
    };
    local arm(name, config, embedder={}) = {
      name: task + ', ' + name,
      group: task,
      config: config,
      baseline: task + ', GloVe',
      changes: {
        model: { embedder: embedder },
        trainer: { regularizers: [{ parameters: 'mix.*weights', l2: set.l2 }] },
      },
    };
    [
      arm('GloVe', tasks[task].baseline) { baseline: null, changes: {} },
      arm('ELMo', tasks[task].config, elmo),
      arm('transformer', tasks[task].baseline, transformer),
      arm('ELMo and transformer', tasks[task].config, elmo + transformer),
    ]
    for task in ['NER', 'SST-5', 'SNLI']
  ]),
}
