"""What type checkers are told of the messages is what there is at run time."""

from __future__ import annotations

import ast

import pytest

from engine.wire import messages
from engine.wire.schema import message_names
from engine.wire.structs import Struct
from tools.message_stubs import PATH, stub


def test_the_stub_is_that_of_the_tables() -> None:
    assert stub() == PATH.read_text(), "run `make stubs`"


def test_every_class_of_the_stub_has_its_fields_and_its_defaults() -> None:
    declared = {
        node.name: node for node in ast.parse(stub()).body if isinstance(node, ast.ClassDef)
    }
    assert sorted(declared) == list(message_names())
    for name, node in declared.items():
        _same(node, getattr(messages, name))


def _same(node: ast.ClassDef, made: type[Struct]) -> None:
    fields = [
        statement.target.id
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]
    assert list(made.__slots__) == fields
    given = made()
    for statement in node.body:
        if isinstance(statement, ast.ClassDef):
            _same(statement, getattr(made, statement.name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            _fits(getattr(given, statement.target.id), ast.unparse(statement.annotation))


def _fits(value: object, annotation: str) -> None:
    whole, _, nullable = annotation.partition(" | ")
    if value is None:
        assert nullable == "None", annotation
        return
    one = {"_Records": "bytes"}.get(whole, whole)
    assert type(value).__name__ == one.split("[")[0].split(".")[-1], annotation


@pytest.mark.parametrize("name", ["NoSuchRequest", "_private"])
def test_a_message_that_is_not_there_is_no_attribute(name: str) -> None:
    with pytest.raises(AttributeError):
        getattr(messages, name)
