// The labeller of ../srl_conll05.jsonnet without ELMo.
(import '../srl_conll05.jsonnet') { elmo:: null }
