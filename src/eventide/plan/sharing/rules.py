"""The rules by which live queries share work, and what each costs and saves."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class SharingRules:
    """Which rules are on. None of them changes a row; tests try all subsets.

    index_conditions  Filter(p, Scan) -> Scan, and p becomes an entry of the predicate index of the
                      stream: an event costs what the conditions cost that may hold, not all.
    lift_constants    x > 70 -> x > $1, and 70 becomes a value in the row of the query: queries
                      that differ in it are one template. Costs a column where it is needed.
    lift_lengths      Sequence(…, within 10 s) -> Sequence(…, within $2): how long a result may
                      last is a value of the query as well. Not where rows could have channels, and
                      only live: over history, a length says how far back events count.
    share_followers   Sequence(numbered, numbered) -> Sequence(numbered, plain), if many queries
                      wait for the same events: an event is then not repeated for each of them.
                      Pays off from some queries on that have the same condition there, and always
                      if it only compares with constants: they become keys.
    share_windows     windows of one stream that differ in size and slide are merged from the same
                      slices: an event is added once, however many windows there are.
    share_parts       Filter(avg > $1, windows) -> the same windows for all queries that begin
                      together, and an entry of an index of their rows for each: what is equal in
                      several queries runs once. Pays off if two queries have the part.
    share_standing    queries over windows in brackets -> one with the number of the query as a key.
                      Pays off if two queries that begin together differ in nothing but constants.
                      Their state cannot be divided again: it is for sets.
    share_channels    (event, query), (event, other query) -> (event, {query, other query}), if
                      queries differ only in which events come first (NEXT, FOLD): what waits is
                      there once for all of them. Pays off if an event is for eight or more.
                      A query cannot be taken out of a set of queries again: it is for sets.
    share_refreshes   standing queries over groups in [RANGE … SLIDE …] are such windows, with one
                      synopsis for each condition. For sets: their rows are changes.
    """

    index_conditions: bool = True
    lift_constants: bool = True
    lift_lengths: bool = True
    share_followers: bool = True
    share_windows: bool = True
    share_parts: bool = True
    share_standing: bool = False
    share_channels: bool = False
    share_refreshes: bool = False

    @property
    def on(self) -> tuple[str, ...]:
        """The names of the rules that are on, in the order in which they are tried."""
        return tuple(each.name for each in fields(self) if getattr(self, each.name))


ALL_RULES = SharingRules()
RULES_OF_SETS = SharingRules(share_standing=True, share_channels=True, share_refreshes=True)
RULES_OF_HISTORY = SharingRules(lift_lengths=False)
WITHOUT_PARTS = SharingRules(lift_lengths=False, share_parts=False)
"""For queries that are distributed: a part would be needed wherever one is that reads its rows."""
