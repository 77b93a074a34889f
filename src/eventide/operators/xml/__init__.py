"""The path stage: which nodes of XML documents the steps of many patterns can be on.

asked.py      what is asked of documents: patterns, and views of them
trie.py       the paths of all patterns as one automaton
state_sets.py the sets of its states that occur in documents, found as they come
tables.py     patterns and views as arrays
read_once.py  small batches are read once for all queries
stage.py      documents → tuples of nodes, by one kernel for all patterns
witnesses.py  the operator: the witnesses of one pattern as rows

Joins of documents with equal values, for all queries at once:

asked_edges.py    which pairs of nodes queries ask the path stage for
pair_table.py     numbers of pairs, for Python and for kernels
tries.py          the queries of each template as a trie of edges
join_rows.py      what queries of the same way have in common
join_queries.py   the queries, which come and go
edge_stage.py     documents → the nodes of all edges
bound_nodes.py    these nodes, and what joins give
join_documents.py the operator: documents join those of a window before them
written.py        its state as bytes
written_nodes.py  rows → texts of nodes, or documents put together
join_streams.py   one join over streams of documents: rows in, rows out
"""
