"""What is known of live queries, for people: their numbers, and their newest rows drawn."""
