"""Client settings on the command line: `-X key=value`, which override those of a file.

A key without effect is refused, so that a misspelt key is not ignored.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.settings import CLIENT_KEYS, parse_jaas_options
from engine.errors import EngineError
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.hints import did_you_mean
from kctl.numbers import INT32_MAX, parse_whole_number

#: Groups of keys of which a client uses only one: truststores, and its own certificate.
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
    """The command has no client setting of this name."""

    exit_code = exits.USAGE

    def __init__(self, key: str, known: Iterable[str]) -> None:
        keys = sorted(known)
        super().__init__(f"no client setting of this command: {key}")
        self.key = key
        near = did_you_mean(key, keys)
        self.hint = f"{near + ' ' if near else ''}known are {', '.join(keys)}"


class ClientOverrides(NamedTuple):
    """Settings by key: those of every client, and those of this command."""

    shared: Mapping[str, str]
    own: Mapping[str, str]

    def above(self, own_in_file: Mapping[str, str]) -> ClientOverrides:
        """Return these settings with the command's own ones of a file.

        -X overrides the file.
        """
        return self._replace(own={**own_in_file, **self.own})

    def seconds(self, key: str, default_s: float) -> float:
        """Return a setting in ms as seconds, `default_s` if unset; raises UnreadableArgument."""
        text = self.own.get(key)
        if text is None:
            return default_s
        return parse_whole_number(text, f"a value of {key}", 1, INT32_MAX) / 1000


def parse_client_overrides(
    arguments: Sequence[str], own_keys: Sequence[str] = ()
) -> ClientOverrides:
    """Parse `-X KEY=VALUE` options; the last one of a key counts.

    `own_keys` are settings that this command uses, in addition to those of every client. Errors:
    UnreadableArgument, UnknownClientSetting.
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
    """Return an argument's key for an error message, without the value: it may be a password."""
    key = argument[: len(argument) - len(argument.lstrip(_KEY_CHARACTERS))]
    return key if key == argument else f"{key}…"


def merge_over_file(in_file: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a file overridden by those of `-X`, for all names of a setting.

    Without this, JAAS settings of a file would override `sasl.username`: Java's keys have
    precedence over librdkafka's.
    """
    kept = dict(in_file)
    for keys in _ONE_OF:
        if any(key in overrides for key in keys):
            for key in keys:
                kept.pop(key, None)
            if "ssl.keystore.key" in keys:
                kept.pop(_WITH_KEY, None)
    if any(key in overrides for key in _LOGIN) and _JAAS in kept:
        given = parse_jaas_options(kept[_JAAS])
        login = {key: given[option] for key, option in _LOGIN.items() if option in given}
        if login:
            del kept[_JAAS]
            kept |= login
    return {**kept, **overrides}
