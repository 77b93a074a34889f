"""What the database keeps of durable queries: a list of them, and how a state is rebuilt."""
