"""How a query is answered, for explain.

explained.py   the ways considered and what they cost; text.py: the same as text
situations.py  the part about temporal patterns
placement.py   where a plan would run, and how it is distributed
leaf_strip.py  the leaves of a stream over time, for the picture
"""
