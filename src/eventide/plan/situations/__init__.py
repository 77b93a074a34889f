"""Situations and the relations of periods.

allen.py    Allen's thirteen relations, as bits of a mask, and how they compose
nodes.py    the nodes: situations, patterns of them, joins by relation
parts.py    parts of the nodes about situations and periods
periods.py  adds the periods of situations to the columns of a pattern
"""
