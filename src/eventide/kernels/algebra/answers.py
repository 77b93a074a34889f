"""Values of functions that the machine cannot compute, found again by their arguments."""

from __future__ import annotations

import numpy as np

from eventide.kernels.algebra.code import Answers
from eventide.kernels.compiled import Bools, Int64s, call_lean, lean_kernel
from eventide.kernels.hashing import GOLDEN, mixed


@call_lean
def place_of(answers: Answers, keys: Int64s, row: int) -> int:
    """Return the place of a key in the table, or the free one where it belongs."""
    mask = len(answers.used) - 1
    word = np.uint64(0)
    for number in range(answers.keys.shape[1]):
        word = mixed(word * GOLDEN + np.uint64(keys[row, number]))
    place = np.int64(word & np.uint64(mask))
    while answers.used[place]:
        equal = True
        for number in range(answers.keys.shape[1]):
            if answers.keys[place, number] != keys[row, number]:
                equal = False
                break
        if equal:
            break
        place = (place + 1) & mask
    return int(place)


@lean_kernel
def remember_answers(answers: Answers, keys: Int64s, words: Int64s, valid: Bools) -> None:
    """Put values into the table, which has room for them and as many again."""
    for row in range(len(keys)):
        place = place_of(answers, keys, row)
        for number in range(keys.shape[1]):
            answers.keys[place, number] = keys[row, number]
        answers.used[place] = True
        answers.words[place] = words[row]
        answers.valid[place] = valid[row]
