"""What the layers of a biLM know: labels and nearest neighbours."""
