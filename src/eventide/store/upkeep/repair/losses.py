"""Which events are lost, once it is known which are safe."""

from __future__ import annotations

import numpy as np

from eventide.store.upkeep.repair.turn import RepairTurn


def note_losses(turn: RepairTurn) -> None:
    """Report the numbers that damaged records of the log had, if no segment has those events."""
    log = turn.start.log
    if not turn.start.is_newest:
        note_unlisted(turn)
    if log.is_first_lost:
        turn.notes.loss(f"what only the first record of {log.name} had")
    for gap in log.gaps:
        lost = turn.safe.unseen(gap.start, gap.stop)
        for run in np.split(lost, np.flatnonzero(np.diff(lost) > 1) + 1):
            if len(run):
                which = f"number {run[0]}" if len(run) == 1 else f"numbers {run[0]} to {run[-1]}"
                turn.notes.loss(f"{log.name}: {len(run):,} events, {which}")


def note_unlisted(turn: RepairTurn) -> None:
    """Report what the lost version of the manifest had that is not found."""
    lost = turn.safe.unseen(turn.start.manifest.next_seq, turn.view.next_seq)
    if not turn.start.is_counted:
        turn.notes.loss("what only the lost version of the manifest listed")
    elif len(lost):
        which = f"with numbers from {lost[0]} to {lost[-1]}"
        turn.notes.loss(f"{len(lost):,} events {which}, dropped or in no whole file")
    turn.notes.loss("options and commit ids that only the lost version of the manifest had")
