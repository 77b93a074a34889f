"""Many queries over history that run as one: every stream is read once for all of them."""
