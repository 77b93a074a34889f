"""A plan over events as they arrive: the same operators behind a feed for each stream."""
