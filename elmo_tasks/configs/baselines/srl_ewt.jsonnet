// The labeller of ../srl_ewt.jsonnet without ELMo.
(import '../srl_ewt.jsonnet') { elmo:: null }
