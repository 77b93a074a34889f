"""Find an attack in the log of a day with detection rules: as it happens, and afterwards.

python examples/detection.py      (needs eventide[rules])
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import eventide as ev
from eventide.rules import Alert

FOLDER = Path(__file__).parent / "rules"

db = ev.open(tempfile.mkdtemp())
TEXTS = ["host", "account", "image", "command_line", "parent_image"]
processes = db.create_stream("processes", dict.fromkeys(TEXTS, "string"))
logons = db.create_stream(
    "logons",
    {
        "host": "string",
        "account": "string",
        "source_ip": "string",
        "logon_type": "int64",
        "event_id": "int64",
    },
)

rules = ev.rules.add(db, FOLDER / "sigma", mapping=FOLDER / "mapping.yaml")
print(f"{len(rules)} rules, {len(rules.problems)} problems")


def receive(alerts: Sequence[Alert]) -> None:
    """Print alerts as they come."""
    for alert in alerts:
        print(f"live: {alert.ts:%H:%M:%S} {alert.rule.title}")


urgent = rules.at_least("critical").subscribe(receive)
for stream in (logons, processes):
    lines = (FOLDER / f"{stream.name}.jsonl").read_text().splitlines()
    stream.append([json.loads(line) for line in lines])
urgent.wait()
urgent.finish()

for alert in rules.run():
    who = alert.event.get("account") or alert.event.get("User") or ""
    print(f"{alert.ts:%H:%M:%S}  {alert.rule.level:8}  {alert.rule.title}  {who}".rstrip())
