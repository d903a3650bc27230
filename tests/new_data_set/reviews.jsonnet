local lstm = { type: 'stacked_bilstm', hidden_sizes: [8] };

{
  dataset_reader: { type: 'fasttext' },
  train_data_path: std.extVar('REVIEWS') + '/train.txt',
  validation_data_path: std.extVar('REVIEWS') + '/dev.txt',
  model: {
    type: 'bcn',
    embedder: { words: { size: 20 } },
    pre_encoder: { hidden_sizes: [8] },
    encoder: lstm,
    integrator: lstm,
    output: { hidden_sizes: [8] },
  },
  data_loader: { batch_size: 16 },
  trainer: { num_epochs: 5, validation_metric: '+accuracy', optimizer: { type: 'adam', lr: 0.01 } },
}
