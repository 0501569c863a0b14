"""Quotas in words, and for whom they are."""

from __future__ import annotations

import pytest

from kctl.arguments import UnreadableArgument
from kctl.commands.quotas.amounts import amount_text, parse_quotas
from kctl.commands.quotas.entities import EntityNotClear, EntityOptions, required_entity_parts
from kctl.commands.quotas.limits import (
    QuotasNotClear,
    change_quotas,
    parse_unset_request,
    set_request,
)
from kctl.connect import ClusterOptions


@pytest.mark.parametrize(
    ("word", "quota", "amount", "text"),
    [
        ("produce=10MB", "producer_byte_rate", 10_000_000, "10 MB/s"),
        ("produce=1.5MB", "producer_byte_rate", 1_500_000, "1500 kB/s"),
        ("produce=0", "producer_byte_rate", 0, "0 B/s"),
        ("produce=1000001", "producer_byte_rate", 1_000_001, "1000001 B/s"),
        ("consumer_byte_rate=1048576", "consumer_byte_rate", 1 << 20, "1 MiB/s"),
        ("request=12.345678%", "request_percentage", 12.345678, "12.345678 %"),
        ("request=150%", "request_percentage", 150, "150 %"),
        ("mutations=0.5/s", "controller_mutation_rate", 0.5, "0.5/s"),
        ("connections=20", "connection_creation_rate", 20, "20/s"),
    ],
)
def test_amounts_have_units(word: str, quota: str, amount: float, text: str) -> None:
    assert {quota: amount} == parse_quotas([word])
    assert text == amount_text(quota, amount)
    assert {quota: amount} == parse_quotas([f"{quota}={text}"])


@pytest.mark.parametrize(
    "word", ["produce", "speed=1", "produce=50%", "request=1MB", "mutations=-1", "mutations=nan"]
)
def test_what_is_no_quota_is_refused(word: str) -> None:
    with pytest.raises(UnreadableArgument):
        parse_quotas([word])


def test_an_entity_is_a_user_a_client_id_both_or_an_address() -> None:
    both = EntityOptions(user="ann", client_id_default=True)
    assert {"user": "ann", "client-id": ""} == required_entity_parts(both)
    for options in (
        EntityOptions(),
        EntityOptions(user="ann", user_default=True),
        EntityOptions(user="ann", ip="10.0.0.1"),
    ):
        with pytest.raises(EntityNotClear):
            required_entity_parts(options)


def test_addresses_have_one_quota_and_others_have_not_that() -> None:
    for entity, word in (
        (EntityOptions(ip="10.0.0.1"), "produce=1"),
        (EntityOptions(user="ann"), "connections=1"),
    ):
        request = set_request(entity, [word], dry_run=False, output="csv")
        with pytest.raises(EntityNotClear, match="is a quota of"):
            change_quotas(ClusterOptions(), request)


def test_unset_names_quotas_or_all() -> None:
    for words, is_all, given in (([], False, "none is named"), (["produce"], True, "both names")):
        with pytest.raises(QuotasNotClear, match=given) as caught:
            parse_unset_request(EntityOptions(), words, is_all=is_all, dry_run=False, output="csv")
        assert "mutations" in caught.value.hint
