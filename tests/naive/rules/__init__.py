"""What Sigma rules and correlations mean, event by event."""
