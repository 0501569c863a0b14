"""The keys of files of declared state, as JSON Schema for editors; the reader uses them, too.

A value may be a reference to a variable, so a number may also be a text that contains `${`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kctl.schemas import DIALECT, Schema

VERSION: Final = 1
#: Top-level keys with this prefix are ignored; they can hold anchors.
EXTENSION: Final = "x-"

_REFERENCE: Final = {"type": "string", "pattern": r"\$\{"}
_TEXT: Final = {"type": "string", "minLength": 1}
_TEXTS: Final = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}


def _whole(lowest: int, description: str) -> Schema:
    """Return the schema of a whole number, or of a reference to a variable in its place."""
    number = {"type": "integer", "minimum": lowest}
    return {"description": description, "anyOf": [number, _REFERENCE]}


def _mapping(properties: Mapping[str, object], description: str, **more: object) -> Schema:
    """Return the schema of a mapping with these keys and no others; null is allowed."""
    return {
        "description": description,
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": False,
        **more,
    }


_SCALAR: Final = {"type": ["string", "number", "boolean", "null"]}
_SETTINGS: Final[Schema] = {
    "description": "Settings by Kafka's names; null has a setting be at its default",
    "type": ["object", "null"],
    "additionalProperties": {
        "anyOf": [_SCALAR, {"type": "array", "items": {"type": ["string", "number"]}}]
    },
}
TOPIC: Final = _mapping(
    {
        "partitions": _whole(1, "How many; can only grow. Left out: the brokers' default"),
        "replication_factor": _whole(1, "Replicas of each partition"),
        "placement": {
            "description": "Brokers of each partition, the preferred leader first",
            "type": "array",
            "items": {"type": "array", "items": _whole(0, "A broker"), "minItems": 1},
            "minItems": 1,
        },
        "settings": _SETTINGS,
    },
    "A topic; what is left out is left as it is",
)
USER: Final = _mapping(
    {
        "mechanisms": {
            "description": "SCRAM-SHA-256, SCRAM-SHA-512: a list, or iterations by name",
            "anyOf": [
                {"type": "array", "items": _TEXT, "minItems": 1},
                {
                    "type": "object",
                    "additionalProperties": {
                        "anyOf": [*_whole(4096, "")["anyOf"], {"type": "null"}]  # type: ignore[misc]
                    },
                    "minProperties": 1,
                },
            ],
        },
        "password": {
            "description": "A variable of the environment, read when the password is set",
            "type": "string",
            "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$",
        },
    },
    "A user of SCRAM",
)
ACL: Final = _mapping(
    {
        "allow": _TEXTS,
        "deny": _TEXTS,
        "operations": _TEXTS,
        "for": {"enum": ["consumer", "producer", "transactional", "streams"]},
        "topic": _TEXTS,
        "group": _TEXTS,
        "transactional_id": _TEXTS,
        "delegation_token": _TEXTS,
        "user": _TEXTS,
        "cluster": {"type": "boolean"},
        "hosts": _TEXTS,
        "pattern": {"enum": ["literal", "prefixed"]},
        "input": _TEXTS,
    },
    "Access rules: each user, host, operation and resource with each other",
)
_AMOUNT: Final = {"type": ["number", "string"]}
_QUOTAS: Final = ("produce", "consume", "request", "mutations", "connections")
QUOTA: Final = _mapping(
    {
        "user": _TEXT,
        "client_id": _TEXT,
        "ip": _TEXT,
        "limits": {
            "description": "Amounts by quota: produce: 10MB, consume, request: 50%, mutations, "
            "connections, or Kafka's names",
            "type": "object",
            "additionalProperties": _AMOUNT,
            "minProperties": 1,
        },
    },
    "Quotas of a user, a client id, both, or an address; <default> is each without its own",
)
BROKER: Final = _mapping({"settings": _SETTINGS}, "Settings of a broker, changed at run time")
KEEP: Final = _mapping(
    {"topics": {"type": "array", "items": _TEXT}},
    "Regular expressions of whole names that --prune never deletes",
)
_BY_NAME: Final = {"type": ["object", "null"]}
DOCUMENT: Final = _mapping(
    {
        "version": {"const": VERSION},
        "contexts": {
            "description": "The contexts of kctl that this document counts for; else all",
            "type": "array",
            "items": _TEXT,
            "minItems": 1,
        },
        "keep": KEEP,
        "topics": {**_BY_NAME, "additionalProperties": TOPIC},
        "users": {**_BY_NAME, "additionalProperties": USER},
        "acls": {"type": ["array", "null"], "items": ACL},
        "quotas": {"type": ["array", "null"], "items": QUOTA},
        "brokers": {
            **_BY_NAME,
            "description": "default is for all brokers, a number for one",
            "patternProperties": {r"^(default|[0-9]+)$": BROKER},
            "additionalProperties": False,
        },
    },
    "Declared state of Kafka clusters, for kctl apply",
    patternProperties={f"^{EXTENSION}": {}},
    required=["version"],
)


def state_schema() -> Schema:
    """Return the JSON Schema of files of declared state."""
    return {"$schema": DIALECT, "title": "kctl apply -f FILE", **DOCUMENT}


def keys_of(shape: Schema) -> frozenset[str]:
    """Return the keys that a schema of a mapping allows, to refuse others."""
    properties = shape["properties"]
    assert isinstance(properties, dict)
    return frozenset(properties)
