// The tagger of ../pos_ewt.jsonnet without ELMo.
(import '../pos_ewt.jsonnet') { elmo:: null }
