"""Functions in queries: Eventide's, those of the engines around it, and users'."""
