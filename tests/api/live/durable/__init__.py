"""Durable live queries."""
