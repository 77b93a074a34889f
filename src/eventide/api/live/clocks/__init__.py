"""Wall clocks, and what they do to live queries."""
