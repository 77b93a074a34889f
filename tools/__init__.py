"""Tools for working on Eventide: what `make` calls.

wheel.py       make wheel       a wheel with compiled kernels, checked
hatch_hook.py  what the build of a wheel asks: which machine code to take in
signatures.py  make signatures  note for which types kernels are compiled
"""
