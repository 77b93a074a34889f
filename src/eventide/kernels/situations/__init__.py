"""Situations, and searches for the matches of temporal patterns."""
