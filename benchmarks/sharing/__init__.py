"""Live queries that share their work."""
