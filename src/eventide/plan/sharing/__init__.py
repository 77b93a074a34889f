"""Live queries that run as one: what they have in common, and in what they differ."""
