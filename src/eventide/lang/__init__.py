"""Languages: query text to plan nodes. SQL is the only one so far."""
