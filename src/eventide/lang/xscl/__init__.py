"""The language of patterns, which asks for nodes of XML documents.

parse.py      a text → a pattern, by the rules of grammar.lark
mistakes.py   what cannot be read → an error that says what would work
"""
