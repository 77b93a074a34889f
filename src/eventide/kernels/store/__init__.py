"""Encodings and index structures of the event store."""
