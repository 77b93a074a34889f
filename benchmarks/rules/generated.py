"""Generated Sigma rules with the mix of conditions of real ones, and events for them.

In a large public set of rules, equality : endswith : contains are 3,577 : 3,428 : 4,486, a third of
all conditions are used more than once, and most rules have several selections, some negated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from eventide.schema import Schema

MIX = {"": 3_577, "|endswith": 3_428, "|contains": 4_486}
USED_AGAIN = 0.2
"""How often a condition is one that was used before: so a third of all are used more than once."""
STREAM = "process_creation"
COLUMNS = (
    *("Image", "CommandLine", "ParentImage", "ParentCommandLine", "User", "OriginalFileName"),
    *("CurrentDirectory", "IntegrityLevel", "Company", "Product", "Description", "Computer"),
)
FIELDS = {
    "": ("OriginalFileName", "IntegrityLevel", "Company", "Product", "Description", "User"),
    "|endswith": ("Image", "ParentImage"),
    "|contains": ("CommandLine", "ParentCommandLine", "CurrentDirectory"),
}
SHAPES = (
    "one",
    "one and two",
    "one and not filter",
    "1 of option_*",
    "one and 1 of option_*",
    "all of option_* and not 1 of filter_*",
    "(one or two) and not filter",
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SUSPICIOUS = 0.02
"""How many of the events are about a rule."""

Written = dict[str, Any]
"""A rule as plain values."""


@dataclass(slots=True)
class RuleWriter:
    """Writes rules; the same seed writes the same ones."""

    random: Random
    used: dict[str, list[str]] = field(default_factory=dict)
    """The values that rules look for, by field and modifier."""

    def rules(self, count: int) -> list[Written]:
        """Return so many rules."""
        return [self.rule(number) for number in range(count)]

    def rule(self, number: int) -> Written:
        """Return a rule."""
        shape = self.random.choice(SHAPES)
        names = [name for name in ("one", "two") if name in shape]
        for group in ("option", "filter"):
            if f"{group}_*" in shape:
                names += [f"{group}_{place}" for place in range(self.random.randint(2, 3))]
            elif group in shape:
                names.append(group)
        detection = {name: self.selection() for name in names}
        return {
            "title": f"Generated {number}",
            "name": f"generated_{number}",
            "level": "low",
            "logsource": {"category": STREAM},
            "detection": {**detection, "condition": shape},
        }

    def selection(self) -> dict[str, list[str]]:
        """Return one to three items, with one to four values each."""
        items: dict[str, list[str]] = {}
        for _ in range(self.random.randint(1, 3)):
            (modifier,) = self.random.choices(list(MIX), list(MIX.values()))
            key = self.random.choice(FIELDS[modifier]) + modifier
            items[key] = [self.value(key) for _ in range(self.random.choice((1, 1, 2, 4)))]
        return items

    def value(self, key: str) -> str:
        """Return a value for a field: a new one, or one that was used before."""
        known = self.used.setdefault(key, [])
        if known and self.random.random() < USED_AGAIN:
            return self.random.choice(known)
        known.append(self.new_value(key))
        return known[-1]

    def new_value(self, key: str) -> str:
        """Return a value as rules have it: the name of a program, a switch, a word."""
        word = self.word(self.random.randint(4, 9))
        if key.endswith("|endswith"):
            return f"\\{word}.exe"
        if key.endswith("|contains"):
            return self.random.choice((f" -{word} ", f"\\{word}\\", f"{word}=", word))
        return self.random.choice((f"{word}.exe", word.capitalize(), f"{word} {self.word(6)}"))

    def word(self, length: int) -> str:
        """Return a word."""
        return "".join(self.random.choices(LETTERS, k=length))


def generated_rules(count: int, seed: int = 1) -> list[Written]:
    """Return so many rules."""
    return RuleWriter(Random(seed)).rules(count)


def generated_events(count: int, rules: Sequence[Written], seed: int = 2) -> pa.Table:
    """Return events of processes that start, a millisecond after another.

    Values come again as they do in logs: programs of a few hundred, lines that are often new.
    """
    random = Random(seed)
    writer = RuleWriter(random)
    programs = [f"C:\\Program Files\\{writer.word(6)}\\{writer.word(7)}.exe" for _ in range(300)]
    lines = [f"{writer.word(8)}.exe --{writer.word(5)} {writer.word(9)}" for _ in range(2_000)]
    people = [f"CORP\\{writer.word(6)}" for _ in range(200)]
    columns: dict[str, list[str | None]] = {name: [] for name in COLUMNS}
    for number in range(count):
        event = usual_event(random, programs, lines, people)
        if random.random() < 0.3:
            event["CommandLine"] = f"{event['CommandLine']} {number}"
        if random.random() < SUSPICIOUS:
            make_suspicious(event, random.choice(rules)["detection"])
        for name in COLUMNS:
            columns[name].append(event.get(name))
    schema = Schema.of(dict.fromkeys(COLUMNS, "string")).event_arrow
    start_us = 1_772_438_400_000_000
    times = pa.array(
        [start_us + 1_000 * number for number in range(count)], schema.field("ts").type
    )
    return pa.table({"ts": times, **{name: pa.array(each) for name, each in columns.items()}})


def usual_event(
    random: Random, programs: Sequence[str], lines: Sequence[str], people: Sequence[str]
) -> dict[str, str | None]:
    """Return an event that no rule is about; some fields are missing."""
    image, parent = random.choice(programs), random.choice(programs)
    name = image.rsplit("\\", 1)[1]
    return {
        "Image": image,
        "CommandLine": random.choice(lines),
        "ParentImage": parent if random.random() < 0.95 else None,
        "ParentCommandLine": random.choice(lines),
        "User": random.choice(people),
        "OriginalFileName": name if random.random() < 0.8 else None,
        "CurrentDirectory": image.rsplit("\\", 1)[0] + "\\",
        "IntegrityLevel": random.choice(("Low", "Medium", "High", "System")),
        "Company": image.split("\\")[2],
        "Product": image.split("\\")[2],
        "Description": None,
        "Computer": f"pc-{random.randrange(500):03}",
    }


def make_suspicious(event: dict[str, str | None], detection: Mapping[str, Any]) -> None:
    """Let an event fulfil the conditions of a rule, but for those that leave events out."""
    for selection, items in detection.items():
        if selection != "condition" and not selection.startswith("filter"):
            for key, values in items.items():
                fulfil(event, key, values[0])


def fulfil(event: dict[str, str | None], key: str, value: str) -> None:
    """Let an event fulfil a condition."""
    name, _, modifier = key.partition("|")
    known = event[name] or ""
    changed = {
        "": value.upper(),
        "endswith": f"C:\\Users\\Public{value}",
        "contains": f"{known} {value} x",
    }
    event[name] = changed[modifier]
