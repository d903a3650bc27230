// The model of ../squad.jsonnet without ELMo.
(import '../squad.jsonnet') { elmo:: null }
