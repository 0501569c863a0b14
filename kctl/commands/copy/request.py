"""The options of `kctl copy`, and their conversion to settings of the copy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from engine.client.producing import ProducerOptions
from engine.copying.copied_content import ContentRules, parse_anonymising
from engine.copying.copy_plan import AT_LEAST_ONCE, EXACTLY_ONCE
from kctl.arguments import UnreadableArgument
from kctl.commands.produce.request import ProduceRequest, producer_options
from kctl.sizes import parse_bytes
from kctl.value_options import read_hash_key

_LINGER_MS = 5


class CopyRequest(NamedTuple):
    """The options of `kctl copy`."""

    source: str
    destination: str
    topics: tuple[str, ...]
    match: str | None
    prefix: str
    start: str
    until: str
    groups: tuple[str, ...]
    rules: ContentRules
    throttle: str | None
    compression: str
    append: bool
    with_settings: bool
    replication_factor: int | None
    at_least_once: bool
    journal: str | None
    source_config: str | None
    destination_config: str | None
    source_settings: Mapping[str, str]
    destination_settings: Mapping[str, str]
    dry_run: bool
    timeout_s: float
    output: str

    @property
    def delivery(self) -> str:
        """Return the delivery guarantee: exactly once or at least once."""
        return AT_LEAST_ONCE if self.at_least_once else EXACTLY_ONCE

    def identity(self, source_id: str | None, destination_id: str | None) -> str:
        """Return a JSON text of the clusters and all options that decide which records are copied.

        A journal belongs to a command with the same text. It contains a digest of the hash key, not
        the key: the journal must not contain secrets.
        """
        key = self.rules.hash_key
        return json.dumps(
            [
                *(source_id, destination_id, sorted(self.topics), self.match, self.prefix),
                *(self.start, self.until, sorted(self.groups), self.rules.share),
                sorted(self.rules.methods.items()),
                None if key is None else sha256(key).hexdigest(),
                self.delivery,
            ]
        )

    def journal_path(self, identity: str) -> str:
        """Return the path of the copy's journal: --journal, or a path derived from `identity`."""
        if self.journal is not None:
            return self.journal
        home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        return f"{home}/kctl/copy/{sha256(identity.encode()).hexdigest()[:24]}.journal"

    def rate_bytes_per_s(self) -> int | None:
        """Return the throttle in bytes per second, None without one; raises UnreadableArgument."""
        if self.throttle is None:
            return None
        rate = parse_bytes(self.throttle)
        if rate < 1:
            raise UnreadableArgument("a value of --throttle", self.throttle, "1 byte or more")
        return rate

    def producer(self) -> ProducerOptions:
        """Return the producer options for writing to the destination; raises UnreadableArgument."""
        wanted = ProduceRequest("", compression=self.compression, linger_ms=_LINGER_MS)
        return producer_options(wanted)


def parse_content_rules(
    sample: str | None, anonymised: Sequence[str], key_path: str | None
) -> ContentRules:
    """Return the rules by which a copy samples and anonymises records.

    `key_path` is a file with the key of `--anonymise PART=hash`. Errors: UnreadableArgument,
    WrongCopyRule.
    """
    methods = parse_anonymising(tuple(anonymised))
    if key_path is not None and "hash" not in methods.values():
        raise UnreadableArgument("an option", "--anonymise-key", "--anonymise PART=hash with it")
    key = None if key_path is None else read_hash_key(key_path)
    return ContentRules(None if sample is None else _parse_share(sample), methods, key)


def _parse_share(text: str) -> float:
    """Parse a share such as 5% or 0.05, between 0 and 1 exclusive; raises UnreadableArgument."""
    expected = "5%, 0.05 or any other share above 0 and below 1"
    number, percent = text.removesuffix("%"), text.endswith("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        raise UnreadableArgument("a share", text, expected) from None
    if not 0 < share < 1:
        raise UnreadableArgument("a share", text, expected)
    return share
