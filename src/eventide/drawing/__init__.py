"""Pictures of what lives in time: charts, plans, situations.

chart/          lines, points, bars and periods over time, as SVG
plan/           how a query is answered: what lies where in time, and the ways compared
situations/     situations and their matches as bars over time: SVG, page, terminal
page.py         one HTML page of text, charts and tables; page_style.py: its style sheet
zoom.py         the script that zooms into a drawing
picture_file.py a picture into a file, as SVG or as a page
query_words.py  the keywords of queries, to highlight them
"""

MOST_DRAWN = 12
"""So many matches or keys are drawn unless asked otherwise."""
