"""The answer of a standing query, and what of it is emitted."""
