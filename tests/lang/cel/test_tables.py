"""The tables of the parser, once they are kept in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from lark.exceptions import UnexpectedToken

from eventide.lang.cel.tables import GRAMMAR, kept_at, parser, read, write

TEXTS = (
    "cars",
    "SELECT *, 1 AS n FROM FILTER{speed > 3 AND car IN ('a', 'b')} cars PUBLISH fast",
    "(cars NEXT{$1.car = $2.car AND DUR < 10min} cars) FOLD{$2.x > $.x, , $.n + 1 AS n} cars",
)


def test_kept_tables_read_texts_as_new_ones_do(tmp_path: Path) -> None:
    path, built = tmp_path / "folder" / "tables", parser()
    write(path, b"stamp", built)
    kept = read(path, b"stamp")
    assert kept is not None
    for text in TEXTS:
        assert kept.parse(text) == built.parse(text)
    found = []
    for each in (built, kept):
        with pytest.raises(UnexpectedToken) as raised:
            each.parse("cars NEXT cars")
        found.append((raised.value.pos_in_stream, raised.value.accepts | raised.value.expected))
    assert found[0] == found[1]
    assert [each.name for each in path.parent.iterdir()] == ["tables"]


def test_other_or_damaged_tables_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    assert read(path, b"stamp") is None
    write(path, b"stamp", parser())
    assert read(path, b"another grammar") is None
    written = path.read_bytes()
    for wrong in (b"", written[:-1], written[:40] + b"?" + written[41:]):
        path.write_bytes(wrong)
        assert read(path, b"stamp") is None


def test_tables_are_kept_where_byte_code_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.pycache_prefix", None)
    kept = kept_at()
    assert kept is not None
    assert kept.parent == GRAMMAR.parent / "__pycache__"
    monkeypatch.setattr("sys.implementation.cache_tag", None)
    assert kept_at() is None


def test_a_folder_that_cannot_be_written_to_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    write(tmp_path / "file" / "tables", b"stamp", parser())
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
