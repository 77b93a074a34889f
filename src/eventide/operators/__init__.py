"""The steps a plan is made of, one operator a file: frozen configuration plus explicit state.

operator.py        the contract; tree.py: operators that feed each other
changes.py         rows that come and go, on edges that are not append-only
filter_project.py  rows in, rows out, no state
order_rows.py      rows in the order of ORDER BY
order_events.py    the rows of a query as events; align_rows.py: events of several edges
aggregate.py       the accumulator of a bound aggregate
expressions/       expressions over the columns of a batch, and the functions they call
windows/           tumbling, hopping, by count, and a frame for every event
patterns/          MATCH_RECOGNIZE
situations/        SITUATIONS, TPSTREAM, and joins by relation
standing/          the operators of standing queries
algebra/           NEXT and FOLD: events that follow each other
xml/               tree patterns in XML documents
stateful.py        things with a state; state.py and envelope.py: the state as bytes
checking.py        checks of a state that is read
key_layers.py      state by key, of which a step takes only the keys it needs; key_layer.py: a layer
dividing.py        states by query: divided, and united
held_rows.py       rows by key, as such a layer holds them
columns.py         concatenate batches, number keys; fingerprints.py: keys as two words
"""
