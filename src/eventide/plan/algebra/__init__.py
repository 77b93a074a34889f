"""The event algebra: one event after another, and chains of them."""
