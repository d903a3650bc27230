// The model of ../squad_bidaf.jsonnet without ELMo.
(import '../squad_bidaf.jsonnet') { elmo:: null }
