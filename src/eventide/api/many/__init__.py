"""Many queries answered together, over all that is stored.

history.py   plan them and run them in one pass
result.py    their rows
"""
