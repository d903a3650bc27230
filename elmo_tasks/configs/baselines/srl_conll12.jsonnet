// The labeller of ../srl_conll12.jsonnet without ELMo.
(import '../srl_conll12.jsonnet') { elmo:: null }
