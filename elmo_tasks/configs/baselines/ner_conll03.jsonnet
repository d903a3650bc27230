// The tagger of ../ner_conll03.jsonnet without ELMo.
(import '../ner_conll03.jsonnet') { elmo:: null }
