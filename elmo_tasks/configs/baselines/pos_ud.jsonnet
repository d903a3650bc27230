// The tagger of ../pos_ud.jsonnet without ELMo.
(import '../pos_ud.jsonnet') { elmo:: null }
