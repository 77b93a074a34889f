"""lang/sql."""
