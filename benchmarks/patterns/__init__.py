"""Row patterns: `python -m benchmarks patterns`.

data.py          their events: prices of 100 keys
setting.py       those events in every form, and what the rivals made of them
cases.py         what is asked, in each contestant's words, and how it is timed
rivals.py        engines that know MATCH_RECOGNIZE, in environments of their own
pandas_child.py  what pandas-match-recognize's process does
flink_child.py   what PyFlink's process does
"""
