"""The product in two minutes: `eventide demo`.

cars.py      make the events: 200 cars, some of them late
queries.py   the questions: windows, patterns, a standing join
spark.py     the part that needs Spark
agree.py     whether two answers have the same rows
history.py   ask the questions over history, here and on Spark
index.py     ask one through the index, and by a replay of all events
live.py      ask some while the events arrive
pictures.py  the charts
patterns.py  what patterns, join and index found, for the page
report.py    the page
telling.py   a line on the terminal for each step
folder.py    a folder that may be replaced, and only such a one
story.py     all of it in order, told on the terminal
"""
