// A smaller version of ../squad2.jsonnet with a shorter schedule and a share of the training data: squad.jsonnet with
// questions without an answer.
(import 'squad.jsonnet') + (import '../squad2.libsonnet') + { validation_dataset_reader+: { no_answer: true } }
