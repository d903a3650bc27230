// What a tagger reads besides words and characters: nothing, ELMo, a frozen transformer, or both. The transformer's folder,
// or hub:NAME, is in $ELMO_TASKS_TRANSFORMER.
local tasks = import 'tasks.libsonnet';
local transformer = { transformer: { model: std.extVar('ELMO_TASKS_TRANSFORMER'), gamma: 0.2, dropout: 0.3 } };

{
  title: 'GloVe, ELMo and a frozen transformer',
  text: 'The same tagger with the same settings. Both models are frozen, and only the mixes of their layers are learned.',
  seeds: [1, 2, 3],
  // Few sentences show what pretraining gives, and all of them what is left of it.
  shares: [0.07, 1.0],
  arms: [
    { name: 'GloVe', config: tasks.NER.baseline },
    { name: 'ELMo', config: tasks.NER.config, baseline: 'GloVe' },
    {
      name: 'transformer',
      config: tasks.NER.baseline,
      baseline: 'GloVe',
      changes: { model: { embedder: transformer }, trainer: { regularizers: [{ parameters: 'mix.*weights', l2: 0.1 }] } },
    },
    { name: 'ELMo and transformer', config: tasks.NER.config, baseline: 'GloVe', changes: { model: { embedder: transformer } } },
  ],
}
