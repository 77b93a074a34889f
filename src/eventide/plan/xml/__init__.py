"""What is asked of XML documents.

patterns.py  a tree pattern: which nodes a document has, and how they are inside each other
nodes.py     the plan node for its witnesses
"""
