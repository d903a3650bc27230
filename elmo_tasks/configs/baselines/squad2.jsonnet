// The model of ../squad2.jsonnet without ELMo.
(import '../squad2.jsonnet') { elmo:: null }
