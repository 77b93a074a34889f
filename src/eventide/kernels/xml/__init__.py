"""The search for embeddings of tree patterns in XML documents.

walk.py        the set of states that each node of a document is in
arrays.py      what the search reads and writes
steps.py       the nodes that the steps of a pattern can be on
tuples.py      the distinct tuples of nodes that are wanted of them
search.py      all patterns over all documents of a batch
values.py      string values, one behind the other

Joins of documents by equal values in them:

document_log.py   the documents of a window, and which of their nodes have which text
views.py          the nodes of a text together, in a cache with a bound
trie_tables.py    what comes to tables and goes from them
join_programs.py  the queries of all templates as tries
join_pair.py      two documents, for all queries: down the tries
join_documents.py new documents and all before them
joined_rows.py    distinct rows, and the queries that ask for them
"""
