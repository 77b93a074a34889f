"""The ways to execute a standing query; all give the same answers.

aware      by the update pattern of each edge: tuples expire where they are kept, in a structure
           that knows their order; only tuples that go early are announced
negative   windows announce every expiry with a tuple of sign -1, which goes the same way as the
           tuple it takes back
direct     tuples expire where they are kept, in lists that are searched for them

The last two are the classic ones, for comparison.
"""

from __future__ import annotations

from typing import Literal, get_args

from eventide.errors import UnsupportedError, listed

Execution = Literal["aware", "negative", "direct"]
EXECUTIONS: tuple[Execution, ...] = get_args(Execution)


def checked_execution(name: str) -> Execution:
    """Return the execution of that name."""
    for known in EXECUTIONS:
        if name == known:
            return known
    message = f"there is no execution {name!r}"
    raise UnsupportedError(message, hint=f"execution may be {listed(EXECUTIONS)}")
