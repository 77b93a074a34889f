"""Standing queries on Spark: history.py over what is stored, stream.py as events arrive."""
