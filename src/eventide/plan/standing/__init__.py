"""Standing queries.

nodes.py            the nodes: sets, groups, the query; joins.py: those that join
windows.py          windows in brackets behind streams
edges.py            how tuples come and go; update_patterns.py: on each edge of a plan
structures.py       how operators keep tuples until they go
choose.py           which of several plans is run; execution.py: the ways to execute one
cost.py             what a plan costs; flow.py: how many tuples travel on each edge
statistics.py       what is known of its streams, and what is assumed
join_order.py       in which order windows are joined; join_statistics.py: when to change it
unseen.py           which share of a join's rows no refresh sees
elastic.py          answers for shorter windows than those of the query
text.py             the text of explain
"""
