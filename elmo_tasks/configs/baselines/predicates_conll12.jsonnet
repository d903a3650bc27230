// The tagger of ../predicates_conll12.jsonnet without ELMo.
(import '../predicates_conll12.jsonnet') { elmo:: null }
