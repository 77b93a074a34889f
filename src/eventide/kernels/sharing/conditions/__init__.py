"""Which of many conditions are true on each event.

programs.py  what is tested of an event
access.py    hash tables and interval trees: conditions by what they need
matching.py  the search: what an event meets, and then the tests
alike.py     tests of many conditions at a time that differ in constants
clusters.py  which equalities conditions are found by
listing.py   under which keys and intervals other conditions are listed
words.py     values as words that compare as they do
codes.py     codes of values that are no words
patterns.py  many constant texts looked for in a text
"""
