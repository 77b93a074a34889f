"""Row patterns over stored events, with the index: replay only where matches can be.

conditions.py   conditions on the rows of a match, one attribute at a time
pattern_map.py  where matches can be, by the smallest and largest values of leaves
candidates.py   rows that meet conditions, combined to periods that hold all matches
estimate.py     how many periods there will be, and what each choice of conditions costs
selection.py    the choice
replay.py       the periods, read and matched
keyed.py        the same in the rows of each key, or in those that pass a filter
question.py     a pattern over a snapshot: what is known before anything is read
ways.py         all of it as ways to answer a query
slices.py       a pattern over a slice, when all events are replayed
"""
