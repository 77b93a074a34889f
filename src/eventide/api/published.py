"""PUBLISH: the parts of a CEL text that become named streams of a database."""

from __future__ import annotations

from eventide.api.named import NamedQueries, refuse_circle, write_named
from eventide.lang.sql import plan_sql
from eventide.lang.sql.named.head import CreateRequest
from eventide.lang.sql.statement import Statement
from eventide.plan.named import NamedQuery
from eventide.store.files.lock import write_lock


def publish(named: NamedQueries, statement: Statement, params: object = None) -> None:
    """Define the streams that a text publishes, if the text as a whole has an answer.

    What is there already has to be the same.
    """
    if not statement.cel:
        return
    from eventide.lang.sql.cel.publish import published

    requests = published(statement)
    if not requests:
        return
    with write_lock(named.store.path):
        known = dict(named.all())
        for request in requests:
            with request.pointing():
                _publish_one(named, request, known)
        catalog = named.catalog()
        others = {name: each for name, each in known.items() if each.kind != "stored stream"}
        plan_sql(statement.explained, catalog, params, indexed=catalog, named=others)
        if known != named.all():
            write_named(named.store.path, known)


def _publish_one(named: NamedQueries, request: CreateRequest, known: dict[str, NamedQuery]) -> None:
    """Add a stream to the named queries, unless the same is there."""
    from eventide.lang.sql.cel.publish import says_the_same

    name = request.name.lower()
    found = known.get(name)
    if found is not None and found.kind != "view" and says_the_same(found.text, request.query):
        return
    named.is_there(request, known)
    added = NamedQuery(request.name, request.kind, request.query)
    refuse_circle(added, {**known, name: added}, request)
    known[name] = named.checked(added, {**known, name: added})
