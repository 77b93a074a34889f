"""Languages: query text to plan nodes. SQL is the only one so far.

sql/      SQL and what we add to it
seen.py   the plans of texts that were seen before
"""
