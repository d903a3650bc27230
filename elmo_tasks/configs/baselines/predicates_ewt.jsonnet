// The tagger of ../predicates_ewt.jsonnet without ELMo.
(import '../predicates_ewt.jsonnet') { elmo:: null }
