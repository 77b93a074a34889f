"""GROUP BY of standing queries."""
