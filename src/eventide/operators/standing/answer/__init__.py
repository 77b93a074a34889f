"""The answer of a standing query, and its reports."""
