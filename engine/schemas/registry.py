"""Schemas from a registry with Confluent's REST interface, such as Apicurio or Karapace.

```
GET /schemas/ids/ID                        {"schema": TEXT, "schemaType": KIND, "references": […]}
GET /subjects/SUBJECT/versions/VERSION     the same, for a reference {"name", "subject", "version"}
```

A schema without a type is Avro. References are followed recursively, the deepest first.
"""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit, urlunsplit

from engine.errors import EngineError
from engine.host.http import Http
from engine.json_text import JsonObject
from engine.limits import SCHEMA_REFERENCES_MAX, UNKNOWN_SCHEMAS_MAX
from engine.schemas.schema import NoSuchSchema, Schema, SchemaKind, UnusableSchema

_OK = 200
_NOT_FOUND = 404
_REFUSED = (401, 403)
#: Statuses of temporary failures: Request Timeout, Too Early, Too Many Requests.
_PASSING = (408, 425, 429)
_SERVER_ERRORS = 500
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryRefused(EngineError):
    """A registry refused a request."""

    def __init__(self, url: str, status: int, reason: str) -> None:
        """Build the error; `may_pass` is set for statuses of overload and of a failing server."""
        super().__init__(f"{url}: status {status}: {reason}")
        self.url = url
        self.status = status
        #: Whether a repeated request may succeed.
        self.may_pass = status in _PASSING or status >= _SERVER_ERRORS
        self.reason = reason
        if status in _REFUSED:
            self.hint = "KCTL_SCHEMA_REGISTRY_AUTH=USER:PASSWORD sets the user"


class Registry:
    """A schema registry at an address; callers cache the schemas."""

    def __init__(self, http: Http, url: str, *, auth: str | None, timeout_s: float) -> None:
        """Use the registry at `url`; `auth` is USER:PASSWORD, unquoted.

        Without `auth` the credentials in the address are used, which are percent-encoded.
        """
        self._http = http
        parts = urlsplit(url)
        user, _, host = parts.netloc.rpartition("@")
        #: The address without credentials, as errors name it.
        self._url = urlunsplit(parts._replace(netloc=host)).rstrip("/")
        self._headers = {"Accept": _ACCEPT, **_authorization(auth or unquote(user))}
        self._timeout_s = timeout_s
        #: Number of ids that the registry did not have; at UNKNOWN_SCHEMAS_MAX requests end.
        self._unknown_count = 0

    def schema(self, schema_id: int) -> Schema:
        """Request a schema and its references from the schema registry.

        Raises NoSuchSchema, UnusableSchema, RegistryRefused, HttpUnreachable. After
        UNKNOWN_SCHEMAS_MAX unknown ids no more are requested, and UnusableSchema is raised.
        """
        if self._unknown_count >= UNKNOWN_SCHEMAS_MAX:
            reason = f"not requested, {self._url} had none of {UNKNOWN_SCHEMAS_MAX} others"
            raise UnusableSchema(f"schema {schema_id}", reason)
        answer = self._get(f"/schemas/ids/{schema_id}")
        if answer is None:
            self._unknown_count += 1
            raise NoSuchSchema(schema_id, self._url)
        name = answer.get("schemaType") or SchemaKind.AVRO.value
        try:
            kind = SchemaKind(name)
        except ValueError:
            raise UnusableSchema(f"schema {schema_id}", f"its type is {name}") from None
        references: dict[str, str] = {}
        self._add_references(answer, references, schema_id)
        return Schema(kind, str(answer["schema"]), tuple(references.items()))

    def _add_references(self, answer: JsonObject, found: dict[str, str], schema_id: int) -> None:
        """Add the texts of the schemas to which a response refers, also indirectly, to `found`.

        The key is the name by which a schema is imported; it comes after those to which it refers
        itself. Raises UnusableSchema if one is missing or there are too many.
        """
        what = f"schema {schema_id}"
        for name, path in _references(answer, what):
            if name in found:
                continue
            if len(found) >= SCHEMA_REFERENCES_MAX:
                raise UnusableSchema(what, "it refers to too many others")
            referred = self._get(path)
            if referred is None:
                raise UnusableSchema(what, f"{path} is not there")
            # Taken down before its own references, so that a ring of them ends.
            found[name] = ""
            self._add_references(referred, found, schema_id)
            del found[name]
            found[name] = str(referred["schema"])

    def _get(self, path: str) -> JsonObject | None:
        """Request a path of the registry; return its JSON object, None for status 404.

        Raises RegistryRefused for another status, or if the object is not that of a schema.
        """
        import json

        url = self._url + path
        response = self._http.get(url, self._headers, self._timeout_s)
        try:
            answer = json.loads(response.body)
        except (ValueError, RecursionError):
            answer = None
        if response.status == _NOT_FOUND:
            return None
        if response.status != _OK:
            reason = answer.get("message") if isinstance(answer, dict) else None
            raise RegistryRefused(url, response.status, str(reason or "no reason given"))
        if not isinstance(answer, dict) or "schema" not in answer:
            raise RegistryRefused(url, response.status, "this is no schema registry")
        return answer


def _references(answer: JsonObject, what: str) -> list[tuple[str, str]]:
    """Return the (name, path in the registry) of each schema that a response refers to.

    Raises UnusableSchema for a malformed reference.
    """
    found = []
    rows = answer.get("references") or []
    for row in rows if isinstance(rows, list) else [rows]:
        try:
            name, subject, version = str(row["name"]), str(row["subject"]), int(row["version"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise UnusableSchema(
                what, f"it refers to {row}, which lacks a name, a subject or a version's number"
            ) from None
        found.append((name, f"/subjects/{quote(subject, safe='')}/versions/{version}"))
    return found


def _authorization(auth: str) -> dict[str, str]:
    """Return the HTTP header of basic authentication, empty without credentials.

    `auth` has the form "user:password".
    """
    if not auth:
        return {}
    from base64 import b64encode

    return {"Authorization": "Basic " + b64encode(auth.encode()).decode()}
