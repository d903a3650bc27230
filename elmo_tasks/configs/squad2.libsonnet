// What SQuAD 2.0 adds to ../squad.jsonnet and cpu/squad.jsonnet: questions without an answer, and a score for them.
local data = std.extVar('ELMO_TASKS_DATA');

{
  dataset_reader+: { no_answer: true },
  train_data_path: data + '/squad2/train-v2.0.json.xz',
  validation_data_path: data + '/squad2/dev-v2.0.json',
  model+: { no_answer: true },
}
