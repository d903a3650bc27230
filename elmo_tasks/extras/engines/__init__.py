"""Arrow functions for Ray Data and Spark, and folders of Parquet parts."""
