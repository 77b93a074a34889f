"""The ways to execute a standing query; all give the same answers.

aware      by the update pattern of each edge: tuples expire where they are kept, in a structure
           that knows their order; only tuples that go early are announced
negative   windows announce every expiry with a tuple of sign -1, which goes the same way as the
           tuple it takes back
direct     tuples expire where they are kept, in lists that are searched for them

Queries are run by the first. The last two are the classic ones, which tests and benchmarks compare
it with, and whose costs `explain` estimates.
"""

from __future__ import annotations

from typing import Literal, get_args

Execution = Literal["aware", "negative", "direct"]
EXECUTIONS: tuple[Execution, ...] = get_args(Execution)
