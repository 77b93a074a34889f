"""Regular expressions as pySigma checks them: by RE2, which also runs them, and without a word.

Its own engine lets RE2 write to stderr what is wrong; the error says that anyway.
"""

from __future__ import annotations

import re
from typing import Any

import re2
from sigma.policy import SigmaPolicy

LETTERS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}


class QuietExpressions:
    """RE2 that raises errors and writes none, as pySigma asks for it."""

    def compile(self, pattern: str, flags: int = 0) -> Any:  # noqa: ANN401
        """Return a compiled expression."""
        options = re2.Options()
        options.log_errors = False
        letters = "".join(letter for flag, letter in LETTERS.items() if flags & flag)
        return re2.compile(f"(?{letters}){pattern}" if letters else pattern, options)

    @property
    def error(self) -> Any:  # noqa: ANN401
        """What is raised for an expression that is wrong."""
        return re2.error


_ENGINE: Any = QuietExpressions()
POLICY = SigmaPolicy(regex_engine=_ENGINE)
