"""The steps a plan is made of, one operator a file: frozen configuration plus travelling state.

evaluate.py           expressions over the columns of a batch; functions_*.py are what they call
aggregate.py          the accumulator of a bound aggregate
filter_project.py     rows in, rows out, no state
window_aggregate.py   tumbling and hopping windows
sliding_aggregate.py  a frame for every event
columns.py, state.py  batches put together, keys numbered; between states and bytes
"""
