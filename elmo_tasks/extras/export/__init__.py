"""A biLM or a tagger as ONNX graphs and one JSON file, for machines and browsers without torch."""
