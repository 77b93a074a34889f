"""The cost of single steps of a query, in seconds, by which the ways to answer it are compared.

Only their ratios decide, and those hardly differ from machine to machine. The numbers are for all
cores together, as measured by `python -m benchmarks windows` and `index` on two cores.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, fields
from math import isfinite
from pathlib import Path

from eventide.errors import StoreError
from eventide.store.files.disk import write_atomically

log = logging.getLogger("eventide.history")

FILE = "weights.json"
VERSION = 2
"""The version of the file. Weights of another version may mean something else, and are not used."""
MOST_SECONDS = 1.0
"""No step of this kind takes as long."""
MOST_OFF = 30.0
"""A weight further from the usual one than this factor was measured wrongly."""


UNREADABLE = (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Weights:
    """Seconds for each unit of work."""

    replay_event: float = 1.0e-8
    """Read an event, and find its pane."""
    replay_value: float = 8.0e-9
    """Add an event to one aggregate."""
    replay_pane: float = 1.5e-7
    """Keep a pane until its windows close, for one aggregate."""
    index_start: float = 1.0e-3
    """Look at the query, and at the segments."""
    index_entry: float = 1.5e-7
    """Find the slice of a leaf, and merge its entry."""
    index_leaf: float = 2.0e-5
    """Find a leaf that a cut goes through, and the cut in it."""
    index_value: float = 1.2e-9
    """Check a value of such a leaf, and add it up."""
    index_run: float = 6.0e-8
    """Keep what lies in a leaf between two cuts, for one attribute."""
    window: float = 6.0e-8
    """Put a window together from panes, for one aggregate."""
    match_row: float = 2.5e-8
    """Read a row and look for matches there, for any conditions."""
    match_condition: float = 4.5e-9
    """Test a row for one variable."""
    match_key: float = 5.0e-8
    """Put a row with those of its key."""
    match_search: float = 1.0e-7
    """The same if a search is needed, which takes longer."""
    period_start: float = 1.5e-3
    """Use the map, and begin."""
    period_unit: float = 5.0e-6
    """Read a unit (mostly a leaf) and find the periods in it."""
    period_column: float = 6.0e-6
    """One column of a unit."""
    period_row: float = 1.2e-8
    """Take a row out of a unit."""
    period: float = 5.0e-7
    """Begin and end an excerpt."""
    lookup: float = 2.0e-4
    """Find a range in a run of a secondary index."""
    entry: float = 4.5e-8
    """Read an entry of a secondary index, and put it in order of time."""
    hit: float = 1.7e-8
    """Compare a row that meets a condition with those of another."""
    key_row: float = 6.0e-8
    """Read and number the key of a row, where a pattern has keys."""
    column_row: float = 1.5e-8
    """Test a row for a condition where no index has it."""

    @classmethod
    def load(cls, folder: Path) -> Weights:
        """Return the measured weights of a database, or the usual weights if there are none.

        A file that is damaged or of another version is ignored with a warning: weights decide how
        long a query takes, never its answer.
        """
        path = folder / FILE
        try:
            return cls.read(path.read_bytes())
        except FileNotFoundError:
            return DEFAULTS
        except UNREADABLE as error:
            log.warning("%s is not used: %s; `eventide calibrate` writes it anew", path, error)
            return DEFAULTS

    @classmethod
    def read(cls, content: bytes) -> Weights:
        """Return the weights that a file holds; raise ValueError, KeyError or TypeError if none."""
        found = json.loads(content)
        if found["version"] != VERSION:
            message = f"it has version {found['version']}, this Eventide reads {VERSION}"
            raise ValueError(message)
        values = {each.name: float(found["weights"][each.name]) for each in fields(cls)}
        for name, value in values.items():
            if not (isfinite(value) and 0 < value < MOST_SECONDS):
                message = f"{name} is {value}"
                raise ValueError(message)
        return cls(**values)

    def save(self, folder: Path) -> None:
        """Store the weights with a database; the old ones stay until the new ones are complete."""
        content = json.dumps({"version": VERSION, "weights": asdict(self)}, indent=1)
        try:
            write_atomically(folder / FILE, content.encode())
        except OSError as error:
            message = f"cannot write {folder / FILE}: {error}"
            raise StoreError(message, hint="the usual weights are used; check the disk") from error


DEFAULTS = Weights()
