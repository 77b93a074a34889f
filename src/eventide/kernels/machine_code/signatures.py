"""The types of a kernel's arguments as text, and back."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from numba import types

_TOKEN = re.compile(r"\s*(readonly array|Literal\[\w+\]|\w+|-?\d+|[(),])")
_SCALARS: dict[str, Any] = {
    str(each): each
    for each in (
        *(types.int8, types.int16, types.int32, types.int64),
        *(types.uint8, types.uint16, types.uint32, types.uint64),
        *(types.float32, types.float64, types.boolean, types.none),
    )
}
_LITERALS: dict[str, Callable[[str], int | bool]] = {
    "Literal[int]": int,
    "Literal[bool]": lambda word: word == "True",
}


def signature_text(sig: Iterable[Any]) -> str:
    """Return the types of arguments as one line: `array(int64, 1d, C), int64`."""
    return ", ".join(str(each) for each in sig)


def parse_signature(text: str) -> tuple[Any, ...]:
    """Return the types that a line names.

    Raises:
        ValueError: It names something else.
    """
    tokens = [*_TOKEN.findall(text), ")"]
    complete = "".join(tokens[:-1]).replace(" ", "") == text.replace(" ", "")
    try:
        found = _types(tokens)
    except IndexError:
        complete = False
    if tokens or not complete:
        message = f"not the types of a kernel: {text}"
        raise ValueError(message)
    return found


def _types(tokens: list[str]) -> tuple[Any, ...]:
    """Take types up to a closing bracket off the tokens, and the bracket."""
    found: list[Any] = []
    while tokens[0] != ")":
        found.append(_type(tokens))
        if tokens[0] == "x":  # `int64 x 3`
            found *= int(tokens[1])
            del tokens[:2]
        if tokens[0] == ",":
            tokens.pop(0)
    tokens.pop(0)
    return tuple(found)


def _type(tokens: list[str]) -> Any:  # noqa: ANN401 - numba's types have none
    """Take one type off the tokens."""
    name = tokens.pop(0)
    if name in _SCALARS:
        return _SCALARS[name]
    if tokens.pop(0) != "(":
        message = f"not a type of a kernel: {name}"
        raise ValueError(message)
    if name in _LITERALS:
        value = _LITERALS[name](tokens.pop(0))
        tokens.pop(0)
        return types.literal(value)
    if name.endswith("array"):
        element, _, dimensions, _, layout, _ = tokens[:6]
        del tokens[:6]
        readonly = name.startswith("readonly")
        array: Any = types.Array  # its types want the layout to be a literal
        return array(_SCALARS[element], int(dimensions[:-1]), layout, readonly=readonly)
    parts = _types(tokens)
    if name in ("Tuple", "UniTuple"):
        return types.BaseTuple.from_types(parts)
    return types.BaseTuple.from_types(parts, _named_tuple(name))


def _named_tuple(name: str) -> type[Any]:
    """Return the class of a name that a kernel's module has defined."""
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("eventide.kernels."):
            found = getattr(module, name, None)
            if isinstance(found, type) and hasattr(found, "_fields"):
                return found
    message = f"no kernel has defined {name}"
    raise ValueError(message)
