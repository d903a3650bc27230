{
  dataset_reader: { type: 'topics' },
  train_data_path: std.extVar('TOPICS') + '/train.tsv',
  validation_data_path: std.extVar('TOPICS') + '/dev.tsv',
  model: { type: 'mean_of_vectors', embedder: { words: { size: 20 }, elmo: { bilm: 'default' } } },
  data_loader: { batch_size: 16 },
  trainer: { num_epochs: 10, validation_metric: '+accuracy', optimizer: { type: 'adam', lr: 0.01 } },
}
