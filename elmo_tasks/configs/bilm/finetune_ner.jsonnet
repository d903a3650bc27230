// Fine-tunes a biLM for one epoch on the text of CoNLL-2003's training set, without its labels. Run it with
//   elmo-tasks pretrain bilm/finetune_ner --from default -s runs/bilm_ner
local ner = import '../ner_conll03.jsonnet';

{
  corpus: {
    type: 'dataset',
    dataset_reader: ner.dataset_reader,
    train_data_path: ner.train_data_path,
    validation_data_path: ner.validation_data_path,
  },
  trainer: {
    num_epochs: 1,
    batch_size: 32,
    optimizer: { type: 'adamw', lr: 0.0005 },
    learning_rate_scheduler: { type: 'linear_decay', warmup_steps: 20 },
    evaluate_every_steps: 1000,
  },
}
