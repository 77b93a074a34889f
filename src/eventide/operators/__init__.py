"""The steps a plan is made of, one operator a file: frozen configuration plus travelling state.

evaluate.py           expressions over the columns of a batch
filter_project.py     rows in, rows out, no state
window_aggregate.py   tumbling and hopping windows
sliding_aggregate.py  a frame for every event
"""
