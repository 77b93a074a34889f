"""Many live queries that run as one."""
