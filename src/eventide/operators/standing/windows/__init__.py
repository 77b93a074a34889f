"""Windows over streams: events become tuples that come and go."""
