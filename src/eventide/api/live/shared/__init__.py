"""Live queries that run as one: sets of them, and single ones that join others."""
