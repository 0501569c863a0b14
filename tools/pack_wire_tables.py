"""Pack Kafka's message schemas into the tables that engine/wire ships.

    python tools/pack_wire_tables.py kafka-3.9.1.json kafka-4.3.0.json

Each input is one JSON object, message name → schema in the form of Kafka's own message files (the
*.json under common/message in its jars, without their prose). The output is one Python module of
text per release in engine/wire/tables; the text's form is drawn in engine/wire/schema.py. The
second module holds only what differs from the first, and names what is gone.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

OUT = pathlib.Path(__file__).parent.parent / "engine" / "wire" / "tables"
KINDS = {
    "request": "request",
    "response": "response",
    "header": "header",
    "data": "data",
    "metadata": "metadata",
    "coordinator-key": "key",
    "coordinator-value": "value",
}


def field_lines(field: dict[str, Any], depth: int) -> list[str]:
    """Return a field and its nested fields, one line each."""
    versions = field.get("versions") or field["taggedVersions"]
    words = [field["name"], field["type"], versions]
    if "nullableVersions" in field:
        words.append(f"null={field['nullableVersions']}")
    if "taggedVersions" in field:
        words.append(f"tag={field['tag']}:{field['taggedVersions']}")
    default = field.get("default")
    if default not in (None, ""):
        words.append(f"default={str(default).lower() if isinstance(default, bool) else default}")
    if field.get("flexibleVersions") == "none":
        words.append("plain")
    words += [word for word in ("ignorable", "mapKey") if field.get(word)]
    lines = [" " * depth + " ".join(words)]
    for nested in field.get("fields", []):
        lines += field_lines(nested, depth + 1)
    return lines


def message_text(schema: dict[str, Any]) -> str:
    """Return one message as text."""
    words = [
        KINDS[schema["type"]],
        str(schema.get("apiKey", "-")),
        schema["validVersions"],
        schema["flexibleVersions"],
    ]
    if schema.get("latestVersionUnstable"):
        words.append("unstable")
    lines = [" ".join(words)]
    for field in schema["fields"]:
        lines += field_lines(field, 0)
    for struct in schema.get("commonStructs", []):
        lines.append(f"= {struct['name']} {struct['versions']}")
        for field in struct["fields"]:
            lines += field_lines(field, 0)
    return "\n".join(lines) + "\n"


def api_names(schemas: dict[str, dict[str, Any]]) -> dict[int, str]:
    """Return the names of the APIs, without `Request`, by their keys."""
    requests = [s for s in schemas.values() if s["type"] == "request"]
    return {s["apiKey"]: s["name"].removesuffix("Request") for s in requests}


def module_text(
    release: str,
    apis: dict[int, str],
    messages: dict[str, str],
    gone: list[str],
    base: str | None,
) -> str:
    """Return the source of one table module."""
    about = f"but for what equals {base}; see schema.py for the form" if base else "see schema.py"
    out = [f'"""Message schemas of Apache Kafka {release} ({about}).', ""]
    out += ["Written by tools/pack_wire_tables.py: do not edit.", '"""', ""]
    out += ["from __future__ import annotations", ""]
    out += ["#: Messages of the base release that this one no longer has."]
    if gone:
        out += ["GONE: frozenset[str] = frozenset(", "    {"]
        out += [f'        "{name}",' for name in gone] + ["    }", ")", ""]
    else:
        out += ["GONE: frozenset[str] = frozenset()", ""]
    out += ["#: Names of the APIs of this release by their keys."]
    out += ["API_NAMES: dict[int, str] = {"]
    out += [f'    {key}: "{name}",' for key, name in sorted(apis.items())] + ["}", ""]
    out += ["MESSAGES: dict[str, str] = {"]
    for name, text in sorted(messages.items()):
        out.append(f'    "{name}": """\\\n{text}""",')
    return "\n".join([*out, "}", ""])


def main(paths: list[str]) -> None:
    """Write one module per input file; the first is the base of the others."""
    base_name, base = None, {}
    for path in paths:
        release = pathlib.Path(path).stem.removeprefix("kafka-")
        schemas = json.loads(pathlib.Path(path).read_text())
        texts = {name: message_text(schema) for name, schema in schemas.items()}
        changed = {name: text for name, text in texts.items() if base.get(name) != text}
        gone = sorted(set(base) - set(texts))
        target = OUT / f"kafka_{release.replace('.', '_')}.py"
        named = {name: schema | {"name": name} for name, schema in schemas.items()}
        target.write_text(module_text(release, api_names(named), changed, gone, base_name))
        if base_name is None:
            base_name, base = release, texts


if __name__ == "__main__":
    main(sys.argv[1:])
