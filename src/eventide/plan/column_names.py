"""Number columns that have the same name: the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names, with a number behind each that occurred before; case does not matter.

    >>> unique_names(["v", "V", "v_1", "v"])
    ['v', 'V_2', 'v_1', 'v_3']
    """
    taken = {name.lower() for name in names}
    seen: set[str] = set()
    unique: list[str] = []
    for name in names:
        found, count = name, 0
        while found.lower() in seen or (count and found.lower() in taken):
            count += 1
            found = f"{name}_{count}"
        seen.add(found.lower())
        unique.append(found)
    return unique
