"""Languages: query text to plan nodes.

sql/           SQL and what we add to it
cel/           CEL, the language of events that follow each other
xscl/          tree patterns over XML documents
constants.py   constants as all languages write them
parameters.py  the values of ? and $name
selections.py  selections of texts, of which there are thousands, without a syntax tree
seen.py        the plans of texts that were seen before
"""
