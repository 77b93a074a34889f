"""CEL inside SQL, and CEL texts among those that calls take.

written.py  which part of a text is CEL: the rest is cut into the tokens of SQL
read.py     its syntax trees, and their places in FROM
table.py    CEL as a source in FROM; a CEL text is SELECT * from one
sources.py  its plan over the streams that it reads
"""
