// ESIM of ../snli.jsonnet without ELMo.
(import '../snli.jsonnet') { elmo:: null }
