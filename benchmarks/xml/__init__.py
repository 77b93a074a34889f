"""Tree patterns in XML documents."""
