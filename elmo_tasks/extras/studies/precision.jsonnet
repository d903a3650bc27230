// What faster numbers in the biLM cost: float32, bfloat16 and int8, on the same heads.
local tasks = import 'tasks.libsonnet';

{
  title: 'The biLM in float32, bfloat16 and int8',
  text: 'Only the precision of the frozen biLM differs. Its speed is measured by `python -m benchmarks.bilm`.',
  seeds: [1, 2, 3],
  arms: std.flattenArrays([
    [
      {
        name: task + ', ' + precision,
        group: task,
        config: tasks[task].config,
        changes: { model: { embedder: { elmo: { precision: precision } } } },
        [if precision != 'float32' then 'baseline']: task + ', float32',
      }
      for precision in ['float32', 'bfloat16', 'int8']
    ]
    for task in ['NER', 'SST-5', 'SNLI']
  ]),
}
