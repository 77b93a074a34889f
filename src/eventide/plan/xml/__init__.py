"""What is asked of XML documents.

patterns.py  a tree pattern: which nodes a document has, and how they are inside each other
nodes.py     the plan node for its witnesses

document_joins.py  two patterns, and which of their nodes have equal values in two documents
join_graphs.py     what of the patterns has to be looked at to join documents
graph_templates.py join graphs that differ only in their paths have one template
document_queries.py a query of XSCL: which documents, and what is written of them
"""
