"""The path stage: which nodes of XML documents the steps of many patterns can be on.

asked.py      what is asked of documents: patterns, and views of them
trie.py       the paths of all patterns as one automaton
state_sets.py the sets of its states that occur in documents, found as they come
tables.py     patterns and views as arrays
stage.py      documents → tuples of nodes, by one kernel for all patterns
witnesses.py  the operator: the witnesses of one pattern as rows
"""
