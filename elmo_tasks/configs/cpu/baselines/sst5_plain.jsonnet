// The classifier of ../sst5_plain.jsonnet without ELMo.
(import '../sst5_plain.jsonnet') { elmo:: null }
