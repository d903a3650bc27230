// The resolver of ../coref_conll12.jsonnet without ELMo.
(import '../coref_conll12.jsonnet') { elmo:: null }
