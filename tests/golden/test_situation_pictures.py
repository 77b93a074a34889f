"""The pictures of situations in docs/ are those that the program draws."""

from __future__ import annotations

from eventide.plan.situations.allen import NAMES, inverse, mask_named, names_of, relation_between
from tests.golden import situation_pictures as pictures


def test_the_periods_have_the_relations_they_stand_for() -> None:
    shown = set()
    for name, (a, b) in pictures.PERIODS.items():
        assert names_of(relation_between(a, b)) == (name,)
        shown |= {name, *names_of(inverse(relation_between(a, b)))}
    assert shown == set(NAMES)


def test_both_readings_of_finishes_are_marked() -> None:
    assert pictures.paper_name("finishes") == "finished by"
    assert mask_named(pictures.paper_name("finished by"), "paper") == mask_named("finished by")
    text = pictures.drawn_relations()
    assert text.count("DIALECT PAPER") == 2
    assert all(f">a {name} b<" in text for name in NAMES)


def test_the_documents_show_the_relations_as_they_are() -> None:
    assert pictures.RELATIONS.read_text() == pictures.drawn_relations() + "\n"


def test_the_documents_show_matches_as_they_are_found() -> None:
    assert pictures.MATCHES.read_text() == pictures.drawn_matches() + "\n"
