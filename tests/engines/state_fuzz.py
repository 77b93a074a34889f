"""A child process that reads wrong states, so that a crash is reported by the parent.

python -m tests.engines.state_fuzz FIRST COUNT        one line for each mutation, then its outcome
"""

from __future__ import annotations

import faulthandler
import os
import random
import resource
import sys
import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from eventide.errors import EventideError, StateError
from eventide.operators.envelope import seal, unseal
from tests.engines.state_cases import Case, Level, case_names, case_of, layered
from tests.engines.state_mutations import cut_off, flipped, inside, moved, spliced

HANG_S = int(os.environ.get("EVENTIDE_STATE_HANG_S", "900"))
"""So long no mutation takes, on any machine: it has got into a loop."""
MOST_MEMORY = 16 << 30


@dataclass(frozen=True)
class Outcome:
    """What became of a mutation: `refused`, `same`, `went on`, or what is wrong with it."""

    said: str
    wrong: str = ""


def mutation(number: int) -> tuple[Case, random.Random]:
    names = case_names()
    return case_of(names[number % len(names)], in_layers(number)), random.Random(number)


def in_layers(number: int) -> bool:
    """Whether keys are held in layers: in every other case, and the next time in the others."""
    return (number + number // len(case_names())) % 2 == 1


def levels_of(case: Case, state: Any) -> list[Level]:  # noqa: ANN401
    return [Level(case.subject, state, lambda part: part), *case.levels(state)]


def try_one(number: int) -> Outcome:
    case, choose = mutation(number)
    sealed = case.subject.dump(case.state)
    place = choose.randrange(len(levels_of(case, case.state)))
    level = levels_of(case, case.subject.load(sealed))[place]
    dumped = level.subject.dump(level.state)
    other = level.subject.dump(levels_of(case, case.earlier)[place].state)
    from_without = choose.random() < 0.3
    if from_without:
        kind = choose.choice(("bits", "cut", "splice", "moved", "strange"))
        wrong = {
            "bits": lambda: flipped(dumped, choose),
            "cut": lambda: cut_off(dumped, choose),
            "splice": lambda: spliced(dumped, other, choose),
            "moved": lambda: moved(dumped, choose),
            "strange": lambda: strange(choose, case),
        }[kind]()
    else:
        kind, written = inside(unseal(dumped)[1], unseal(other)[1], choose)
        wrong = seal(level.subject.owner, written)
    side = "from without" if from_without else "inside"
    tell(f"{number} {case.name} / {type(level.subject).__name__} / {kind} {side}")
    try:
        loaded = level.subject.load(wrong)
    except StateError:
        return Outcome("refused")
    except Exception:
        return Outcome("load raised", traceback.format_exc())
    if from_without and wrong not in (dumped, other):
        return Outcome("accepted", "a state that fails its checksum was read")
    try:
        case.go_on(level.put_back(loaded))
    except EventideError:
        return Outcome("went on to an error")
    except Exception:
        return Outcome("step raised", traceback.format_exc())
    return Outcome("went on")


def strange(choose: random.Random, case: Case) -> bytes:
    """Return a state of something else."""
    while True:
        other = case_of(choose.choice(case_names()[:6]))
        if other.name != case.name:
            return other.subject.dump(other.state)


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(first: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for number in range(first, first + count):
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        with layered() if in_layers(number) else nullcontext():
            outcome = try_one(number)
        tell(f"= {outcome.said}")
        if outcome.wrong:
            tell(outcome.wrong.replace("\n", "\n| "))
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
