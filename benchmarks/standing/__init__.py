"""Standing queries: `python -m benchmarks standing`.

data.py           their events: traffic on links, streams to join, readings
setting.py        how many events, and how queries are fed and compared
links.py          queries over the traffic of links, in each execution
joins.py          joins of four streams: the order of looking, the time of joining
compared_joins.py lazy joins, fixed orders and buckets, to compare with
global_orders.py  one order of the windows for all origins, as joins elsewhere have it
chains.py         one join of four windows against a chain of joins of two
groups.py         aggregates over large groups, and panes
live.py           a sliding average of each key as events arrive
rivals.py         a join of two streams, in Spark and in Flink
report.py         their table
"""
