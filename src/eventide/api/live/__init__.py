"""Live queries: how events reach them, and how their rows reach a receiver.

query.py         a query that runs over events that are handed to it; late.py: late events
subscription.py  a live query of a database: its life, its counters; durable.py: one that goes on
                 after a restart
calls.py         what a database offers to run them
queries.py       starts them; options.py: how they run, as users say it
group.py         queries at the same event of every stream; running.py: derived streams among them
groups.py        all groups of a database: how queries come and go
delivery.py      how events reach them; follower.py: the thread that notices what other processes
                 append; numbered.py: reads stored events by their numbers
journaled.py     the steps of a query since its checkpoint, as they are written down
row_queue.py     rows that wait; handover.py: the thread that hands them over; receiver.py: a
                 callback or a sink; dead_letters.py: rows that nobody took
clocks/          wall clocks, and how they move the silent streams of a query on
shown/           what people see of a live query: its numbers, its newest rows
stored/          stored derived streams: queries whose rows are stored, exactly once
"""
