// The tagger of ../ner_ontonotes.jsonnet without ELMo.
(import '../ner_ontonotes.jsonnet') { elmo:: null }
