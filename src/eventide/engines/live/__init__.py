"""A plan over events as they arrive: the same operators behind an ordering stage."""
