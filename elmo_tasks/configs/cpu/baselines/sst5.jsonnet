// The network of ../sst5.jsonnet without ELMo.
(import '../sst5.jsonnet') { elmo:: null }
