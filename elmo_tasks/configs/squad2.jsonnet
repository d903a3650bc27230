// SQuAD 2.0: the model of squad.jsonnet with the no-answer option of Clark and Gardner (2018).
(import 'squad.jsonnet') + (import 'squad2.libsonnet')
