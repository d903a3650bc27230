// The tagger of ../chunking_conll00.jsonnet without ELMo.
(import '../chunking_conll00.jsonnet') { elmo:: null }
