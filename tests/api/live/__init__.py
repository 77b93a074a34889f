"""Live queries of a database: their life, their rows, and how they go on."""
