"""Many queries in one job: which events and queries meet where, over history and as a stream.

calls.py     what users call
spread.py    blocks of events by bucket, and the queries of each bucket
asked.py     the queries of one DataFrame, and its columns
batch.py     over DataFrames and stored streams
stream.py    over streaming DataFrames
"""
