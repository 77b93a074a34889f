"""TUMBLE and HOP in GROUP BY, and OVER."""
