"""Thousands of detection rules over events of processes that start.

generated.py   rules with the mix of conditions of real ones, and events that some are about
__main__.py    python -m benchmarks.rules: how long it takes to read, start and run them
"""
