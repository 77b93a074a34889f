"""Made-up events of an auction house, with the attributes that NEXMark publishes."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

Rows = list[dict[str, Any]]

STREAMS = {
    "persons": {
        "id": "int64",
        "name": "string",
        "emailAddress": "string",
        "creditCard": "string",
        "city": "string",
        "state": "string",
        "extra": "string",
    },
    "auctions": {
        "id": "int64",
        "itemName": "string",
        "description": "string",
        "initialBid": "int64",
        "reserve": "int64",
        "expires": "timestamp",
        "seller": "int64",
        "category": "int64",
        "extra": "string",
    },
    "bids": {
        "auction": "int64",
        "bidder": "int64",
        "price": "int64",
        "channel": "string",
        "url": "string",
        "extra": "string",
    },
}
SIDE_INPUT = {"key": "int64", "value": "string"}
CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-7", "channel-12")
BEGIN = datetime(2026, 3, 1, 23, 58)
"""Some minutes before midnight, so that there are two days."""


def made_events(count: int, seed: int = 7) -> dict[str, Rows]:
    """Return the events of each stream: of fifty, one is a person and three are auctions.

    No two events have the same time, and no two bids in a row of a thousand the same price.
    """
    choose = Random(seed)
    now = BEGIN
    persons: Rows = []
    auctions: Rows = []
    bids: Rows = []
    for number in range(count):
        now += timedelta(milliseconds=choose.choice([10, 200, 400, 900, 2500]))
        event: dict[str, Any] = {"ts": now, "extra": "".join(choose.choices("abc", k=number % 6))}
        if number % 50 == 0:
            persons.append(event | person(1000 + len(persons), choose))
        elif number % 50 < 4:
            seller = choose.choice(persons)["id"]
            auctions.append(event | auction(1107 + len(auctions), seller, now, choose))
        else:
            bidder, on = choose.choice(persons[-4:])["id"], choose.choice(auctions[-6:])["id"]
            bids.append(event | bid(on, bidder, len(bids), choose))
    return {"persons": persons, "auctions": auctions, "bids": bids}


def person(number: int, choose: Random) -> dict[str, Any]:
    """Return the attributes of a person."""
    return {
        "id": number,
        "name": choose.choice(["Ann Lee", "Bo Cruz", "Cy Young"]),
        "emailAddress": f"p{number}@example.org",
        "creditCard": "1234 5678",
        "city": choose.choice(["Boise", "Portland", "Phoenix"]),
        "state": choose.choice(["OR", "ID", "CA", "AZ"]),
    }


def auction(number: int, seller: int, now: datetime, choose: Random) -> dict[str, Any]:
    """Return the attributes of an auction."""
    return {
        "id": number,
        "itemName": f"item {number}",
        "description": "a thing",
        "initialBid": choose.randrange(1, 500),
        "reserve": choose.randrange(500, 900),
        "expires": now + timedelta(seconds=choose.randrange(5, 40)),
        "seller": seller,
        "category": choose.choice([10, 11, 12]),
    }


def bid(on: int, bidder: int, number: int, choose: Random) -> dict[str, Any]:
    """Return the attributes of a bid."""
    url = f"https://shop.example.org/a{number}/b/item.htm?query=1"
    if choose.random() < 0.7:
        url += f"&channel_id={choose.randrange(90)}"
    price = round(10 ** (choose.random() * 6 + 2))
    return {
        "auction": on,
        "bidder": bidder,
        "price": price - price % 1000 + number % 1000,
        "channel": choose.choice(CHANNELS),
        "url": url,
    }
