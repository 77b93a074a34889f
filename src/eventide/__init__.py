"""Store event streams, query them, find patterns in them."""
