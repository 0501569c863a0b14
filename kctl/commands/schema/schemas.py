"""Implementation of `kctl schema`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kctl import exits
from kctl.render import check_format, write_rows
from kctl.schemas import LIST_COLUMNS, OUTPUTS, schema_of, schema_text

_FORMATS = ("json", "yaml")


def print_schema(command: Sequence[str], output: str) -> int:
    """Print the schema of one command as JSON or YAML; raises NoSuchOutput, UnknownFormat."""
    check_format(output, _FORMATS)
    schema = schema_of(" ".join(command))
    if output == "yaml":
        import yaml

        yaml.safe_dump(schema, sys.stdout, sort_keys=False, allow_unicode=True)
    else:
        sys.stdout.write(schema_text(schema))
    return exits.OK


def list_schemas(output: str) -> int:
    """Print a row for each command that has `-o json`; returns the exit code."""
    check_format(output)
    rows = [
        {"command": command, "document": "object" if found.is_object else "list of objects"}
        for command, found in OUTPUTS.items()
    ]
    write_rows(LIST_COLUMNS, rows, output)
    return exits.OK
