"""Windows of time and of events: nodes.py, windows by GROUP BY and by OVER."""
