"""The list of kernels to compile says what it means."""

from __future__ import annotations

import pytest
from numba import types

from eventide.kernels.machine_code.cache import KernelCache
from eventide.kernels.machine_code.signatures import parse_signature, signature_text
from eventide.kernels.machine_code.warming import LISTED, listed_kernels, named_kernel


def test_every_line_names_a_kernel_and_types() -> None:
    for name, texts in listed_kernels().items():
        assert isinstance(named_kernel(name)._cache, KernelCache), name
        for text in texts:
            assert signature_text(parse_signature(text)) == text


def test_the_list_is_sorted_and_has_no_line_twice() -> None:
    lines = LISTED.read_text().splitlines()
    assert lines == sorted(set(lines))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", ()),
        ("int64, bool", (types.int64, types.boolean)),
        ("readonly array(int8, 2d, C)", (types.Array(types.int8, 2, "C", readonly=True),)),
        ("Literal[int](-1), none", (types.literal(-1), types.none)),
        ("UniTuple(int64 x 2)", (types.UniTuple(types.int64, 2),)),
        ("Tuple(int64, float64)", (types.Tuple((types.int64, types.float64)),)),
    ],
)
def test_types_are_read_as_numba_writes_them(text: str, meant: tuple[types.Type, ...]) -> None:
    assert parse_signature(text) == meant
    assert signature_text(meant) == text


@pytest.mark.parametrize(
    "text", ["pyobject", "array(int64, 1d, C", "int64)", "Nothing(int64)", "list[int64]"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a type|not the types|no kernel"):
        parse_signature(text)
