"""The generated rules have the mix of conditions that they promise, and are about some events."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml
from benchmarks.rules.__main__ import main
from benchmarks.rules.generated import COLUMNS, MIX, STREAM, generated_events, generated_rules

import eventide as ev


def test_conditions_are_mixed_as_in_real_rules() -> None:
    rules = generated_rules(2_000)
    atoms = [
        (key, value)
        for rule in rules
        for selection in rule["detection"].values()
        if isinstance(selection, dict)
        for key, values in selection.items()
        for value in values
    ]
    kinds = Counter(f"|{key.partition('|')[2]}".rstrip("|") for key, _ in atoms)
    for kind, share in MIX.items():
        assert kinds[kind] / len(atoms) == pytest.approx(share / sum(MIX.values()), abs=0.05)
    uses = Counter(atoms)
    again = sum(count for count in uses.values() if count > 1) / len(atoms)
    assert again == pytest.approx(1 / 3, abs=0.12)


def test_rules_are_read_and_are_about_some_events(tmp_path: Path) -> None:
    written = generated_rules(60)
    (tmp_path / "rules.yml").write_text(yaml.safe_dump_all(written))
    db = ev.open(tmp_path / "logs.ev")
    db.create_stream(STREAM, dict.fromkeys(COLUMNS, "string")).append(
        generated_events(400, written)
    )
    rules = ev.rules.load(db, tmp_path / "rules.yml")
    assert rules.problems == ()
    assert len(rules) == 60
    assert rules.run()


def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rules", "5", "--events", "2000"])
    assert "5 rules" in capsys.readouterr().out
