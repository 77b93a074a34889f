"""The search for embeddings of tree patterns in XML documents.

walk.py        the set of states that each node of a document is in
arrays.py      what the search reads and writes
steps.py       the nodes that the steps of a pattern can be on
tuples.py      the distinct tuples of nodes that are wanted of them
search.py      all patterns over all documents of a batch
values.py      string values, one behind the other
"""
