"""Which records are copied, and what of them."""

from __future__ import annotations

from hashlib import sha256
from zlib import crc32

import pytest

from engine.copying.copied_content import ContentRules, WrongCopyRule, parse_anonymising


def test_a_sample_has_all_records_of_a_key_or_none() -> None:
    rules = ContentRules(share=0.25)
    keys = [b"key-%d" % number for number in range(4000)]
    chosen = [key for key in keys if rules.picks(key, 0, 0)]
    assert 800 < len(chosen) < 1200
    assert all(rules.picks(key, 7, 12345) for key in chosen)


def test_records_without_a_key_are_chosen_by_their_place() -> None:
    rules = ContentRules(share=0.25)
    chosen = [
        rules.picks(None, partition, offset) for partition in (0, 1) for offset in range(2000)
    ]
    assert 800 < sum(chosen) < 1200
    assert chosen[:2000] != chosen[2000:]
    assert all(ContentRules().picks(None, 0, offset) for offset in range(100))


@pytest.mark.parametrize(
    ("texts", "key", "expected"),
    [
        ([], None, (b"k", b"v", (("h", b"x"), ("n", None)))),
        (
            ["key=hash", "value=mask", "headers=mask"],
            None,
            (sha256(b"k").hexdigest().encode(), b"***", (("h", b"***"), ("n", None))),
        ),
        (["key=drop", "headers=drop"], None, (None, b"v", ())),
    ],
)
def test_parts_are_hashed_masked_and_dropped(
    texts: list[str], key: bytes | None, expected: tuple[object, ...]
) -> None:
    rules = ContentRules(methods=parse_anonymising(tuple(texts)), hash_key=key)
    assert expected == rules.content(b"k", b"v", (("h", b"x"), ("n", None)))
    assert (None, None, ()) == rules.content(None, None, ())


def test_a_hash_with_a_key_is_another_one() -> None:
    plain = ContentRules(methods={"key": "hash"})
    keyed = plain._replace(hash_key=b"secret")
    assert plain.content(b"k", None, ())[0] != keyed.content(b"k", None, ())[0]


@pytest.mark.parametrize(
    "texts", [["key"], ["key=rot13"], ["topic=hash"], ["key=hash", "key=drop"]]
)
def test_other_rules_are_refused(texts: list[str]) -> None:
    with pytest.raises(WrongCopyRule):
        parse_anonymising(tuple(texts))


def test_a_share_has_its_end_outside() -> None:
    share = crc32(b"k") / 2**32
    assert not ContentRules(share).picks(b"k", 0, 0)
    assert ContentRules(share + 2**-32).picks(b"k", 0, 0)
