"""The product in two minutes: `eventide demo`.

cars.py      make the events: 200 cars, some of them late
queries.py   the questions: windows, patterns, a standing join
spark.py     the part that needs Spark
agree.py     check whether two answers have the same rows
history.py   ask the questions over history, here and on Spark
index.py     ask one through the index, and by a replay of all events
live.py      ask some while the events arrive
pictures.py  the charts
patterns.py  the sections about patterns, join and index on the page
report.py    the page
telling.py   a line on the terminal for each step
folder.py    replace the folder of an earlier demo, and no other
story.py     all of it in order
"""
