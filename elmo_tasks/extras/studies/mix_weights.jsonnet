// Which layers of the biLM each task weighs most, at the input and at the output, as in figure 2 of Peters et al. (2018).
local tasks = import 'tasks.libsonnet';

{
  title: 'The weights that each task learns for the layers of the biLM',
  text: 'Figure 2 of Peters et al. (2018). There, the input favours the first LSTM layer, and the output is nearly even.',
  seeds: [1, 2, 3],
  changes: { trainer: { regularizers: [{ parameters: 'mix.*weights', l2: 0.001 }] } },
  arms: [
    { name: task, config: tasks[task].config, changes: { model: { embedder: { elmo: { mixes: ['input', 'output'] } } } } }
    for task in ['SNLI', 'SQuAD', 'SST-5', 'SRL', 'coreference']
  ] + [{ name: 'NER', config: tasks.NER.config }],
}
