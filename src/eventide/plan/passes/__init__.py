"""plan/passes."""
