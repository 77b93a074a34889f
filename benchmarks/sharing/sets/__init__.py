"""Whole sets of live queries, from their texts to their rows.

running.py    a set of queries in the engine that shares, and how fast events go through it
usual.py      selections, sequences, row patterns and windows
cayuga.py     400,000 subscriptions of the document on event algebra (table 4.1), and news feeds
rumor.py      sequences of two streams (table 5.3)
rules.py      detection rules
deploying.py  how long queries take to come and go, and what a query takes
ratios.py     how speed changes with queries, skew, selectivity and rules
siddhi.py     the rival, a process of its own that runs SiddhiChild.java
report.py     the page
"""
