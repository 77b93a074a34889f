"""The list of signatures follows what is compiled and what exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.kernels.machine_code.cache import write_checked
from eventide.kernels.machine_code.warming import listed_kernels
from tools import signatures

COMPILED = {
    "keys.search_keys.py311-a.b.code": b"int64, bool\n\x80code",  # a new signature
    "keys.nothing.py311-a.b.code": b"int64\n\x80code",  # no kernel any more
    "hashing.mixed.py311-a.b.code": b"int64\n\x80code",  # not compiled by itself any more
}


def test_what_was_compiled_is_added_and_what_is_gone_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("none.such: int64\nslabs.release: Gone(int64)\nhashing.hash_words: int64\n")
    for name, content in COMPILED.items():
        write_checked(tmp_path / "kept" / name, content)
    (tmp_path / "kept" / "keys.search_keys.py311-a.c.code").write_bytes(b"damaged")
    monkeypatch.setattr(signatures, "LISTED", listed)
    monkeypatch.setattr("eventide.kernels.machine_code.warming.LISTED", listed)
    monkeypatch.setattr(signatures, "folders", lambda: [tmp_path / "kept", tmp_path / "none"])
    signatures.main()
    assert listed_kernels() == {
        "hashing.hash_words": ["int64"],
        "keys.search_keys": ["int64, bool"],
    }
    assert listed.read_text() == "hashing.hash_words: int64\nkeys.search_keys: int64, bool\n"
