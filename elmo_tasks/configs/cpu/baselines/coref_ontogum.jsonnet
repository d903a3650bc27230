// The resolver of ../coref_ontogum.jsonnet without ELMo.
(import '../coref_ontogum.jsonnet') { elmo:: null }
