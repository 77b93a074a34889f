"""Situations and the relations of periods.

allen.py    Allen's thirteen relations, as bits of a mask, and how they compose
nodes.py    the nodes: situations, patterns of them, joins by relation
parts.py    what the nodes about situations and periods are made of
periods.py  the periods of the situations of a match, beside what a pattern returns
"""
