"""Schemas from a registry: what is asked, what is followed, what is told."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine.host.http import HttpResponse
from engine.limits import UNKNOWN_SCHEMAS_MAX
from engine.schemas.registry import Registry, RegistryRefused
from engine.schemas.schema import NoSuchSchema, SchemaKind, UnusableSchema


class Answers:
    """A registry of answers by path."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.requested: list[tuple[str, Mapping[str, str]]] = []

    def get(self, url: str, headers: Mapping[str, str], timeout_s: float) -> HttpResponse:
        self.requested.append((url, headers))
        answer = self.answers.get(url.rpartition("/r/")[2])
        if answer is None:
            return HttpResponse(404, b'{"error_code": 40403, "message": "Schema not found"}')
        if isinstance(answer, HttpResponse):
            return answer
        return HttpResponse(200, json.dumps(answer).encode())


def registry(answers: Answers, url: str = "http://host/r", auth: str | None = None) -> Registry:
    return Registry(answers, url, auth=auth, timeout_s=5)


def test_a_schema_without_a_type_is_avro() -> None:
    answers = Answers(**{"schemas/ids/7": {"schema": '"string"'}})
    assert (SchemaKind.AVRO, '"string"', ()) == registry(answers).schema(7)[:3]
    assert "http://host/r/schemas/ids/7" == answers.requested[0][0]


def test_a_registry_is_not_flooded_with_ids_that_it_does_not_know() -> None:
    answers = Answers(**{"schemas/ids/7": {"schema": '"string"'}})
    source = registry(answers)
    for schema_id in range(1_000, 1_000 + UNKNOWN_SCHEMAS_MAX):
        assert SchemaKind.AVRO is source.schema(7).kind
        with pytest.raises(NoSuchSchema):
            source.schema(schema_id)
    requested = len(answers.requested)
    with pytest.raises(UnusableSchema, match="schema 7: not requested, http://host/r had none of"):
        source.schema(7)
    assert requested == len(answers.requested)


def test_references_come_before_what_needs_them() -> None:
    def of(name: str, *needs: str) -> dict[str, Any]:
        rows = [{"name": f"{n}.proto", "subject": f"s/{n}", "version": 2} for n in needs]
        return {"schema": name, "schemaType": "PROTOBUF", "references": rows}

    answers = Answers(
        **{
            "schemas/ids/1": of("top", "a", "b"),
            "subjects/s%2Fa/versions/2": of("a", "c"),
            "subjects/s%2Fb/versions/2": of("b", "c"),
            "subjects/s%2Fc/versions/2": of("c", "a"),
        }
    )
    answers.answers = {f"{path}": answer for path, answer in answers.answers.items()}
    schema = registry(answers).schema(1)
    assert SchemaKind.PROTOBUF is schema.kind
    assert ["c", "a", "b"] == [text for _, text in schema.references]


def test_missing_things_are_reported() -> None:
    with pytest.raises(NoSuchSchema, match="http://host/r has no schema 7"):
        registry(Answers()).schema(7)
    gone = {"schema": "x", "references": [{"name": "a", "subject": "a", "version": 1}]}
    with pytest.raises(UnusableSchema, match="/subjects/a/versions/1 is not there"):
        registry(Answers(**{"schemas/ids/7": gone})).schema(7)
    with pytest.raises(UnusableSchema, match="its type is THRIFT"):
        registry(Answers(**{"schemas/ids/7": {"schema": "", "schemaType": "THRIFT"}})).schema(7)


@pytest.mark.parametrize(
    "reference",
    [
        {"name": "a", "version": 1},
        {"name": "a", "subject": "a"},
        {"subject": "a", "version": 1},
        {"name": "a", "subject": "a", "version": "latest"},
        {"name": "a", "subject": "a", "version": None},
        {"name": "a", "subject": "a", "version": float("inf")},
        "a",
        None,
    ],
)
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_reference_that_leads_nowhere_makes_its_schema_unusable(
    reference: Any, is_listed: bool
) -> None:
    rows = [reference] if is_listed else reference
    answers = Answers(**{"schemas/ids/7": {"schema": "x", "references": rows}})
    if rows is None:
        assert "x" == registry(answers).schema(7).text
        return
    with pytest.raises(UnusableSchema, match="schema 7: it refers to"):
        registry(answers).schema(7)


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (HttpResponse(401, b'{"message": "who?"}'), "status 401: who?"),
        (HttpResponse(500, b"<html>"), "status 500: no reason given"),
        (HttpResponse(200, b"<html>"), "this is no schema registry"),
        (HttpResponse(200, b"[]"), "this is no schema registry"),
    ],
)
def test_a_registry_that_refuses_is_reported(response: HttpResponse, told: str) -> None:
    with pytest.raises(RegistryRefused, match=told) as refused:
        registry(Answers(**{"schemas/ids/7": response})).schema(7)
    assert (response.status == 401) == bool(refused.value.hint)


@pytest.mark.parametrize(
    ("url", "auth", "sent"),
    [
        ("http://host/r", None, None),
        ("http://host/r/", "u:p", "u:p"),
        ("http://a%40b:p%3A@host/r", None, "a@b:p:"),
        ("http://host/r", "u:100%25%", "u:100%25%"),
        ("http://a:b@host/r", "u:p%40", "u:p%40"),
    ],
)
def test_credentials_are_sent_and_not_shown(url: str, auth: str | None, sent: str | None) -> None:
    answers = Answers(**{"schemas/ids/7": {"schema": "x"}})
    registry(answers, url, auth).schema(7)
    requested, headers = answers.requested[0]
    assert "http://host/r/schemas/ids/7" == requested
    expected = None if sent is None else "Basic " + base64.b64encode(sent.encode()).decode()
    assert expected == headers.get("Authorization")
