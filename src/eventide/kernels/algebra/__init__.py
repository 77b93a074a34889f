"""The search for events that follow each other.

code.py      instructions of conditions, and the data that they read
machine.py   the machine that runs them on a waiting event and one that may follow it
answers.py   values of functions that the machine cannot compute, found again by their arguments
follow.py    what follows each waiting event
"""
