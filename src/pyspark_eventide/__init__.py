"""Lets Spark find `format("eventide")` without a call to register it."""
