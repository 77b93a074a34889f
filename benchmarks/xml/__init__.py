"""Tree patterns in XML documents, and joins of documents by equal values."""
