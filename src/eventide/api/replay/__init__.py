"""Replay stored events in order of time: at full speed, or paced by a clock.

calls.py     what a database offers to replay streams
run.py       the replay itself: steps, the clock, progress
pace.py      event time against a clock
queries.py   through live queries
events.py    the events as they are, merged
"""

from eventide.api.replay.events import replay_merged
from eventide.api.replay.queries import replay_queries
from eventide.api.replay.run import Replay, Replayed, ReplayProgress

__all__ = ["Replay", "ReplayProgress", "Replayed", "replay_merged", "replay_queries"]
