"""Whose rows these are: queries by their numbers, and how many rows each has."""

from __future__ import annotations

from eventide.kernels.compiled import Int32s, Int64s, lean_kernel


@lean_kernel
def look_up_queries(
    numbers: Int64s, first: int, known: Int32s, templates: Int32s, rows: Int32s
) -> None:
    """Write the template and the row of constants of each query, side by side from `first` on.

    Both are -1 for a number beyond all that are known.
    """
    for i in range(len(numbers)):
        place = numbers[i] - first
        templates[i] = rows[i] = -1
        if 0 <= place < len(known):
            templates[i], rows[i] = known[place, 0], known[place, 1]


@lean_kernel
def count_rows_of(places: Int32s, column: int, counts: Int64s) -> None:
    """Count a row more at each place, in one of the columns."""
    for place in places:
        counts[place, column] += 1
