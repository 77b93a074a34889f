"""Stored events once more, in order of time: at full speed, or paced by a clock.

run.py       the replay itself: steps, the clock, what has come so far
queries.py   through standing queries
events.py    as they are, merged
"""

from eventide.api.replay.events import replay_merged
from eventide.api.replay.queries import replay_queries
from eventide.api.replay.run import Replay, Replayed, ReplayProgress

__all__ = ["Replay", "ReplayProgress", "Replayed", "replay_merged", "replay_queries"]
