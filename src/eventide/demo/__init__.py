"""The product in two minutes: `eventide demo`.

cars.py      make the events: 200 cars, some of them late
queries.py   the questions
spark.py     the part that needs Spark
agree.py     whether two answers have the same rows
history.py   ask the questions over history, here and on Spark
live.py      ask one while the events arrive
report.py    the page with the charts
folder.py    a folder that may be replaced, and only such a one
story.py     all of it in order, told on the terminal
"""
