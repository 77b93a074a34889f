"""Nodes → text of XML."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from eventide.documents.nodes import Nodes


def written(nodes: Nodes, node: int) -> str:
    """Return an element with all that is inside it; comments and prefixes are not kept.

    >>> from eventide.documents.read import read_documents
    >>> nodes = read_documents([b"<x:a xmlns:x='u' id='1'>1 &lt; 2<!-- so --><b/>3</x:a>"])
    >>> written(nodes, 0)
    '<a xmlns="u" id="1">1 &lt; 2<b xmlns=""/>3</a>'
    """
    parts: list[str] = []
    _write(nodes, node, "", parts)
    return "".join(parts)


def _write(nodes: Nodes, node: int, default: str, parts: list[str]) -> None:
    """Append the parts of an element; `default` is the namespace of names without a prefix."""
    uri, name = _split(nodes.name_of(node))
    parts.append(f"<{name}")
    if uri != default:
        parts.append(f" xmlns={quoteattr(uri)}")
    inside, end = node + 1, int(nodes.end[node])
    while inside < end and nodes.name_of(inside).startswith("@"):
        parts.append(_attribute(nodes, inside))
        inside += 1
    place, stop = int(nodes.text_starts[node]), int(nodes.text_ends[node])
    if inside == end and place == stop:
        parts.append("/>")
        return
    parts.append(">")
    while inside < end:
        parts.append(_text(nodes, place, int(nodes.text_starts[inside])))
        _write(nodes, inside, uri, parts)
        place, inside = int(nodes.text_ends[inside]), int(nodes.end[inside])
    parts += [_text(nodes, place, stop), f"</{name}>"]


def _attribute(nodes: Nodes, node: int) -> str:
    uri, name = _split(nodes.name_of(node)[1:])
    value = quoteattr(nodes.value_of(node))
    # A default namespace is not that of attributes: one with a namespace needs a prefix.
    return f" xmlns:p{node}={quoteattr(uri)} p{node}:{name}={value}" if uri else f" {name}={value}"


def _split(name: str) -> tuple[str, str]:
    uri, _, local = name.rpartition("}")
    return uri[1:], local


def _text(nodes: Nodes, start: int, stop: int) -> str:
    return escape(nodes.text[start:stop].decode())
