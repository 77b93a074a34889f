"""The paths of all patterns as one automaton: a trie of axes and names.

State 0 is the document. A node is in a state if the path to the step is one to the node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.plan.xml.patterns import PatternStep


@dataclass(frozen=True)
class PathTrie:
    """What follows each state: by name, right inside or anywhere inside."""

    child: list[dict[str, int]] = field(default_factory=lambda: [{}])
    inside: list[dict[str, int]] = field(default_factory=lambda: [{}])
    names: set[str] = field(default_factory=set)
    """The names that steps have."""
    searched: set[int] = field(default_factory=set)
    """The states whose nodes are looked at; others only lead on."""

    def __len__(self) -> int:
        return len(self.child)

    def add(self, root: PatternStep) -> list[int]:
        """Add the paths of a pattern; return the state of each step."""
        states: list[int] = []

        def visit(branch: PatternStep, above: int) -> None:
            follows = (self.child if branch.axis == "child" else self.inside)[above]
            state = follows.setdefault(branch.name, len(self.child))
            if state == len(self.child):
                self.child.append({})
                self.inside.append({})
                self.names.add(branch.name)
            states.append(state)
            for each in branch.below:
                visit(each, state)

        visit(root, 0)
        return states

    def fitting(self, name: str) -> tuple[str, ...]:
        """Return the names of steps that the name of a node fits.

        >>> trie = PathTrie()
        >>> trie.names.update(["*", "title", "{*}title"])
        >>> trie.fitting("title"), trie.fitting("{u}title"), trie.fitting("@title")
        (('title', '{*}title', '*'), ('{*}title', '*'), ())
        """
        at = "@" if name.startswith("@") else ""
        local = name.rpartition("}")[2].removeprefix("@")
        written = (name, f"{at}{{*}}{local}", f"{at}*")
        return tuple(each for each in written if each in self.names)
