"""More text than fits into one process: units of the input, each of which becomes one Parquet file of a folder."""
