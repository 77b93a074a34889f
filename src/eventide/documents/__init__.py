"""XML documents: bytes → nodes in document order, and back.

nodes.py     the nodes of a batch of documents, as arrays
read.py      bytes → nodes; what is hostile or broken is refused
encoded.py   in which encoding the bytes of a document are
write.py     nodes → text of XML
"""
