"""Client settings on the command line: `-X key=value`, which go before those of a file.

A key that would have no effect is refused: one that is misspelt must not be passed over.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.settings import CLIENT_KEYS, jaas_options
from engine.errors import EngineError
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.hints import did_you_mean
from kctl.numbers import INT32_MAX, whole_number

#: Keys of which a client follows one alone: what it trusts, and its own certificate.
_ONE_OF: Final = (
    ("ssl.truststore.location", "ssl.ca.location", "ssl.truststore.certificates"),
    ("ssl.keystore.location", "ssl.certificate.location", "ssl.keystore.key"),
)
_WITH_KEY: Final = "ssl.keystore.certificate.chain"
_KEY_CHARACTERS: Final = f"{string.ascii_letters}{string.digits}.-_"
_EXPECTED: Final = "KEY=VALUE, as client.id=me"
_JAAS: Final = "sasl.jaas.config"
_LOGIN: Final = {"sasl.username": "username", "sasl.password": "password"}


class UnknownClientSetting(EngineError):
    """A client setting was given that this command has no use for."""

    exit_code = exits.USAGE

    def __init__(self, key: str, known: Iterable[str]) -> None:
        keys = sorted(known)
        super().__init__(f"no client setting of this command: {key}")
        self.key = key
        near = did_you_mean(key, keys)
        self.hint = f"{near + ' ' if near else ''}known are {', '.join(keys)}"


class ClientOverrides(NamedTuple):
    """Settings by key: those of every client, and those of the command's own."""

    shared: Mapping[str, str]
    own: Mapping[str, str]

    def above(self, own_in_file: Mapping[str, str]) -> ClientOverrides:
        """Return these with a file's settings of the command's own, where none goes before them."""
        return self._replace(own={**own_in_file, **self.own})

    def seconds(self, key: str, default_s: float) -> float:
        """Return a setting in ms as seconds; raises UnreadableArgument."""
        text = self.own.get(key)
        if text is None:
            return default_s
        return whole_number(text, f"a value of {key}", 1, INT32_MAX) / 1000


def client_overrides(arguments: Sequence[str], own_keys: Sequence[str] = ()) -> ClientOverrides:
    """Return the settings of `-X` options, the last one for each key; `own_keys` are the command's.

    Errors: UnreadableArgument, UnknownClientSetting.
    """
    shared: dict[str, str] = {}
    own: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        key = key.strip()
        if not key or not equals:
            raise UnreadableArgument("a client setting", _key_in(argument), _EXPECTED)
        if key in own_keys:
            own[key] = value.strip()
        elif key in CLIENT_KEYS:
            shared[key] = value.strip()
        else:
            raise UnknownClientSetting(key, (*CLIENT_KEYS, *own_keys))
    return ClientOverrides(shared, own)


def _key_in(argument: str) -> str:
    """Return an argument as far as it may be a key: a password may stand behind it."""
    key = argument[: len(argument) - len(argument.lstrip(_KEY_CHARACTERS))]
    return key if key == argument else f"{key}…"


def over_file(in_file: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a file with those of `-X` above them, however a key is spelt.

    Otherwise a file's JAAS line would override `sasl.username`: Java's keys precede librdkafka's.
    """
    kept = dict(in_file)
    for keys in _ONE_OF:
        if any(key in overrides for key in keys):
            for key in keys:
                kept.pop(key, None)
            if "ssl.keystore.key" in keys:
                kept.pop(_WITH_KEY, None)
    if any(key in overrides for key in _LOGIN) and _JAAS in kept:
        given = jaas_options(kept[_JAAS])
        login = {key: given[option] for key, option in _LOGIN.items() if option in given}
        if login:
            del kept[_JAAS]
            kept |= login
    return {**kept, **overrides}
