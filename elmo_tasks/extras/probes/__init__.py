"""What the layers of a biLM know: labels, word senses and nearest neighbours."""
