"""Live queries that run as one: templates, the index above their streams, and how queries join."""
