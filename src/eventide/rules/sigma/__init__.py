"""Sigma rules, which pySigma reads, as queries of Eventide.

reading.py       files to rules as pySigma has them, and what is wrong with the others
expressions.py   regular expressions, checked quietly
atoms.py         a field and a value to a condition in SQL
conditions.py    the condition of a rule to one in SQL, with true and false but no null
legs.py          the events of the rules that a correlation is about
correlations.py  counts and sequences of the events of other rules
queries.py       all of it: rules to queries, each rule once
"""

from __future__ import annotations

from eventide.errors import UnsupportedError

try:
    import sigma as sigma
except ModuleNotFoundError as error:
    if error.name != "sigma":
        raise
    message = "Sigma rules are read by pySigma, and there is no package sigma"
    raise UnsupportedError(message, hint="pip install 'eventide[rules]'") from error
