"""Input and output of a search for matches of a temporal pattern."""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Floats, Int64s

# Places in `SearchRoom.pause`: how deep a search was when it paused (0 if it did not), whether its
# candidates were still to be found, how many steps it may take, and how many matches are enough.
DEPTH, ENTERED, STEPS, ENOUGH = range(4)
# Places in the progress through changes: rows written, whether a search paused; and then the change
# that is its anchor, the symbols that were anchors before, how many matches there were before the
# position and before the anchor, whether it follows the definitions, how many matches there are.
WRITTEN, PAUSED, EACH, ANCHORS, BEFORE, EARLIER, FOLLOWS, COUNT = range(8)


class SearchedRuns(NamedTuple):
    """Runs by key and symbol, in order of time.

    For each its start (time and position), its end and where it became visible (positions). For a
    key and symbol, those in [lows, highs) are visible; the last may still be open.
    """

    start_ts: Int64s
    start: Int64s
    end: Int64s
    seen: Int64s
    lows: Int64s
    highs: Int64s


class SearchedChanges(NamedTuple):
    """Changes of runs in order of position; a group is key times symbols, plus symbol."""

    position: Int64s
    ts: Int64s
    run: Int64s
    kind: Int64s
    group: Int64s


class SearchedPattern(NamedTuple):
    """The constraints of a pattern.

    Masks of all pairs (at symbol times symbols, plus symbol), which pairs have one, which symbols
    can complete a match when they become visible, which when they end, and orders of joining that
    follow the definitions.
    """

    masks: Int64s
    linked: Int64s
    starts_matter: Int64s
    ends_matter: Int64s
    defined: Int64s


class SearchLimits(NamedTuple):
    """The window, and the times [from_us, until_us) at which matches are wanted.

    With `counting` only their number is wanted; with `adaptive`, orders are planned anew.
    """

    within_us: int
    from_us: int
    until_us: int
    counting: bool
    adaptive: bool


class MovingAverages(NamedTuple):
    """Moving averages of sizes and shares, those that the orders were planned with, and counts.

    The counts are positions since the last look, new plans, and positions between two looks.
    """

    sizes: Floats
    shares: Floats
    planned_sizes: Floats
    planned_shares: Floats
    counts: Int64s


class SearchRoom(NamedTuple):
    """Where a search works.

    By symbol the member of the match; by depth whether the members so far make it new, the next
    candidate, the range it is in, how many ranges there are, and the ranges themselves;
    room for two more lists of ranges; and where the search paused.
    """

    members: Int64s
    novel: Int64s
    at: Int64s
    number: Int64s
    sizes: Int64s
    ranges: Int64s
    spare: Int64s
    other: Int64s
    pause: Int64s


class FoundMatches(NamedTuple):
    """Members of matches, symbol by symbol, and the change of each; or numbers of matches.

    If matches are only counted, `members` has their number at each position that has any.
    """

    members: Int64s
    change: Int64s


class Search(NamedTuple):
    """A search for the matches of a pattern among runs.

    `orders` has for each symbol the order in which the others are joined to it.
    """

    runs: SearchedRuns
    pattern: SearchedPattern
    limits: SearchLimits
    averages: MovingAverages
    orders: Int64s
    room: SearchRoom
    found: FoundMatches


class Anchor(NamedTuple):
    """A run that changed, from which a search begins.

    Its symbol, its change and the position of that, whether it became visible only now; the symbols
    that were anchors at this position before, as bits; and the group of symbol 0 of its key.
    """

    symbol: int
    change: int
    now: int
    is_new: bool
    left_out: int
    group: int
