// Decomposable attention of ../snli_decomposable.jsonnet without ELMo.
(import '../snli_decomposable.jsonnet') { elmo:: null }
