"""Stored derived streams: queries whose rows are stored, exactly once.

stream.py    such a stream, as users hold it
query.py     its query, as it runs in this process
unread.py    the events that it has not read
queries.py   all of a database
"""
