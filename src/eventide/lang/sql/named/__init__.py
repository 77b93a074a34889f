"""Named queries: CREATE STREAM and CREATE VIEW, and the use of their names in FROM.

head.py    CREATE … AS and DROP in front of a query
inline.py  a name in FROM → its query in brackets
texts.py   a query and the definitions that it reads as one text, so that errors find their place
stream.py  the plan of a stream's query: its rows as events
"""
