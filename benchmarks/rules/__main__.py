"""python -m benchmarks.rules --rules 3000 --events 20000: read, start and run generated rules."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import yaml

import eventide as ev
from benchmarks.rules.generated import COLUMNS, STREAM, generated_events, generated_rules
from eventide.rules import Alert

BATCH = 1_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", type=int, default=3_000)
    parser.add_argument("--events", type=int, default=20_000)
    asked = parser.parse_args(arguments)
    written = generated_rules(asked.rules)
    events = generated_events(asked.events, written)
    alerts: list[Alert] = []
    with tempfile.TemporaryDirectory() as folder, ev.open(Path(folder, "logs.ev")) as db:
        Path(folder, "rules.yml").write_text(yaml.safe_dump_all(written))
        stream = db.create_stream(STREAM, dict.fromkeys(COLUMNS, "string"))
        began = perf_counter()
        rules = ev.rules.load(db, Path(folder, "rules.yml"))
        read = perf_counter()
        live = rules.subscribe(alerts.extend)
        started = perf_counter()
        for start in range(0, asked.events, BATCH):
            stream.append(events.slice(start, BATCH))
        live.wait()
        ran = perf_counter()
        live.cancel()
    seconds = ran - started
    print(f"{len(rules):,} rules, {asked.events:,} events")
    print(f"read as queries   {read - began:8.2f} s")
    print(f"started live      {started - read:8.2f} s")
    print(f"run               {seconds:8.2f} s, {asked.events / seconds:,.0f} events/s")
    print(f"alerts            {len(alerts):8,}")


if __name__ == "__main__":
    main()
