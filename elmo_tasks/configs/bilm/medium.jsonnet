// The medium biLM of the published ones, 28.0 million parameters, with the recipe of original.jsonnet.
(import 'original.jsonnet') { bilm: 'medium' }
