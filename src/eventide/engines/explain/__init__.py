"""How a query is answered, looked at from outside.

explained.py   the ways considered and what they took; text.py says it
situations.py  what is said of temporal patterns
placement.py   where a plan would run, and how it is spread
leaf_strip.py  the leaves of a stream along its time, for the picture
"""
