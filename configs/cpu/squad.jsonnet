// The reader of ../squad.jsonnet in a size and on a share of the training data that one core trains in half an hour.
local encoder = { type: 'stacked_bigru', hidden_sizes: [50], dropout: 0.2 };

(import '../squad.jsonnet') {
  // A tenth of the questions, about 2,000 of 18,891 paragraphs; all of the development data.
  dataset_reader+: { share: 0.105 },
  validation_dataset_reader: { type: 'squad' },
  model+: {
    embedder+: { characters+: { filters: 50 } },
    encoder: encoder,
    matched_size: 100,
    self_attention_encoder: encoder,
    start_encoder: encoder { dropout: 0.0 },
    end_encoder: encoder { dropout: 0.0 },
  },
  data_loader: { batch_size: 32 },
  trainer+: {
    num_epochs: 5,
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: { type: 'linear_decay' },
    grad_norm: 5.0,
    moving_average: { decay: 0.995 },
  },
}
