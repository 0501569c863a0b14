"""YAML as nodes that know their position, so that every error names file and line.

Scalars are kept as they are written: `0.50` and `1e3` are texts of settings, not numbers. Duplicate
keys are refused; `<<` merges mappings, as YAML defines it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from engine.errors import EngineError
from kctl import exits
from kctl.arguments import is_utf8
from kctl.declared.variables import BadReference, with_variables
from kctl.numbers import INT32_MAX

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

    #: A node of any of the three kinds, which `id` tells.
    _AnyNode: TypeAlias = ScalarNode | SequenceNode | MappingNode

_NULL, _MERGE, _BOOL = (f"tag:yaml.org,2002:{name}" for name in ("null", "merge", "bool"))
_FLAT = "kctl_is_flat"
_JSON = ".json"


class BadStateFile(EngineError):
    """A file of declared state is malformed; nothing was changed."""

    exit_code = exits.USAGE

    def __init__(self, where: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason
        self.hint = hint


class YamlValue:
    """A node of a file; `where` is its position as `file:line`."""

    def __init__(self, node: Node, path: str, environment: Mapping[str, str]) -> None:
        self._node = cast("_AnyNode", node)
        self._path = path
        self._environment = environment

    @property
    def where(self) -> str:
        """Return the value's position as `file:line`, for messages."""
        return f"{self._path}:{self._node.start_mark.line + 1}"

    def fault(self, reason: str, hint: str | None = None) -> BadStateFile:
        """Return an error at this position, to be raised by the caller."""
        return BadStateFile(self.where, reason, hint)

    @property
    def is_null(self) -> bool:
        """Return True if the value is null or empty."""
        return bool(self._node.tag == _NULL)

    @property
    def is_list(self) -> bool:
        """Return True if the value is a list."""
        return bool(self._node.id == "sequence")

    @property
    def is_mapping(self) -> bool:
        """Return True if the value is a mapping."""
        return bool(self._node.id == "mapping")

    def mapping(self, what: str) -> dict[str, YamlValue]:
        """Return the values of a mapping by key, empty for null.

        Keys keep the order of the file; merged ones (`<<`) come first. Errors: BadStateFile for
        another type, with `what` as the name of the value.
        """
        if self.is_null:
            return {}
        if not self.is_mapping:
            raise self.fault(f"{what} is a mapping")
        if not getattr(self._node, _FLAT, False):
            self._refuse_duplicates()
            self._merge_mappings()
        return {self._key(key): self._child(value) for key, value in self._node.value}

    def _refuse_duplicates(self) -> None:
        """Raise BadStateFile for a key that occurs twice in the mapping."""
        seen: dict[str, YamlValue] = {}
        for key, _ in self._node.value:
            here = self._child(key)
            if key.tag == _MERGE:
                continue
            text = self._key(key)
            if text in seen:
                raise here.fault(f"{text} is there twice: first at {seen[text].where}")
            seen[text] = here

    def _merge_mappings(self) -> None:
        """Merge the mappings of `<<` into this one, whose own keys have precedence."""
        from yaml.constructor import ConstructorError, SafeConstructor

        try:
            SafeConstructor().flatten_mapping(cast("MappingNode", self._node))
        except ConstructorError as error:
            raise self.fault(f"<<: {error.problem}") from error
        # A node with an anchor may be read several times.
        setattr(self._node, _FLAT, True)

    def _key(self, key: _AnyNode) -> str:
        """Return a key as text; raises BadStateFile if it is a list or a mapping."""
        if key.id != "scalar":
            raise self._child(key).fault("a key is a text")
        return self._child(key).text("a key")

    def items(self, what: str) -> list[YamlValue]:
        """Return the values of a list, none for null.

        Errors: BadStateFile for another type, with `what` as the name of the value.
        """
        if self.is_null:
            return []
        if not self.is_list:
            raise self.fault(f"{what} is a list")
        return [self._child(child) for child in self._node.value]

    def written(self, what: str) -> str:
        """Return a text or number as it is written, references included.

        Errors: BadStateFile for another type, with `what` as the name of the value.
        """
        if self._node.id != "scalar" or self.is_null:
            raise self.fault(f"{what} is a text or a number")
        return str(self._node.value)

    def text(self, what: str) -> str:
        """Return a text or number after replacing references to variables.

        Errors: BadStateFile for another type, with `what` as the name of the value.
        """
        try:
            text = with_variables(self.written(what), self._environment)
        except BadReference as error:
            raise self.fault(str(error), error.hint) from error
        return self._with_joined_surrogates(text)

    def _with_joined_surrogates(self, text: str) -> str:
        """Return the text with surrogate pairs, as JSON escapes them, joined to single characters.

        Raises BadStateFile for a lone surrogate, which UTF-8 cannot encode.
        """
        if text.isascii():
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self.fault(f"{text!r} is no text of UTF-8") from None

    def int32(self, what: str, *, lowest: int = 1) -> int:
        """Return a scalar as a number from `lowest` to 2^31 − 1; raises BadStateFile.

        `what` is the name of the field in the message.
        """
        text = self.text(what).strip()
        is_number = re.fullmatch(r"[0-9]{1,100}", text) is not None
        if not is_number or not lowest <= int(text) <= INT32_MAX:
            rule = f"a whole number from {lowest} to {INT32_MAX}"
            raise self.fault(f"{what} is {rule}, and no {text!r}")
        return int(text)

    def variable(self, name: str) -> str | None:
        """Return an environment variable, None if it is not set.

        Errors: BadStateFile for bad UTF-8.
        """
        value = self._environment.get(name)
        if value is not None and not is_utf8(value):
            raise self.fault(f"the variable {name} has bytes that are no UTF-8")
        return value

    def plain(self) -> object:
        """Return the value as plain Python objects: None, texts, booleans, lists and dicts.

        Numbers are texts, too.
        """
        if self.is_null:
            return None
        if self.is_list:
            return [child.plain() for child in self.items("a list")]
        if self.is_mapping:
            return {key: child.plain() for key, child in self.mapping("a mapping").items()}
        text = self.text("a value")
        if self._node.tag != _BOOL:
            return text
        return {"true": True, "false": False}.get(text.lower(), text)

    def refuse_rings(self) -> None:
        """Raise BadStateFile for an alias inside the very node that it refers to."""
        open_nodes: set[int] = set()
        ended: set[int] = set()
        # Each node is pushed twice: once to enter it, and once to leave it after its children.
        left = [(self._node, False)]
        while left:
            node, is_end = left.pop()
            if is_end:
                open_nodes.discard(id(node))
                ended.add(id(node))
            elif id(node) in open_nodes:
                raise self._child(node).fault("an alias stands for what it is a part of")
            elif id(node) not in ended and node.id != "scalar":
                open_nodes.add(id(node))
                left.append((node, True))
                left += [(child, False) for child in _children(node)]

    def _child(self, node: Node) -> YamlValue:
        """Return another node of the same file as a value."""
        return YamlValue(node, self._path, self._environment)


def _children(node: _AnyNode) -> list[_AnyNode]:
    """Return the nodes directly in a mapping (keys and values) or in a list."""
    if node.id == "mapping":
        return [part for pair in node.value for part in pair]
    return list(node.value)


def yaml_documents(
    content: bytes, path: str, environment: Mapping[str, str]
) -> Sequence[YamlValue]:
    """Return the documents of a YAML or JSON file, without empty ones; raises BadStateFile.

    `path` is its name in errors; `environment` has the variables that texts refer to.
    """
    import yaml

    if path.endswith(_JSON):
        # JSON may be indented by tabs, YAML may not; within JSON texts tabs are escaped.
        content = content.replace(b"\t", b" ")
    try:
        nodes = list(yaml.compose_all(content, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = "" if mark is None else f":{mark.line + 1}"
        raise BadStateFile(f"{path}{line}", f"not YAML: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadStateFile(path, f"not YAML: {error}") from error
    except RecursionError:
        raise BadStateFile(path, "is nested too deeply") from None
    values = [YamlValue(node, path, environment) for node in nodes if node is not None]
    for value in values:
        value.refuse_rings()
    return [value for value in values if not value.is_null]
