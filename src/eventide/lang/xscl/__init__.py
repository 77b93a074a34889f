"""The language of patterns, which asks for nodes of XML documents.

parse.py      a text → a pattern, by the rules of grammar.lark
mistakes.py   what cannot be read → an error that says what would work

Queries of XSCL, which join documents:

clauses.py    a text → its clauses, and where each stands
queries.py    a text → a query: patterns, what is equal, how far apart
sides.py      the variables of both patterns
output.py     columns, or a document that is put together
"""
