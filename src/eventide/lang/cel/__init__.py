"""CEL, the Cayuga Event Language: text → plan.

recognise.py   which texts are CEL, found without reading them
grammar.lark   the grammar, tables.py its parser, which is kept
parse.py       a text, read by it; tree.py is what it becomes
mistakes.py    what cannot be read, as errors of ours
plan.py        what each part of a text becomes, over events.py:
select.py      SELECT             unite.py     UNION
follow.py      NEXT               fold.py      FOLD; sides.py: what names mean in both
instants.py    AT INSTANT
values.py      values and conditions; functions.py: what they may call
"""
