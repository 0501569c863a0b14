"""Differences that are known and why; docs/compatibility.md says the same to users."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tests.compat.wire.pair import Difference

#: Patterns of `kind label path`, and why what they match may differ.
ACCEPTED: Final[tuple[tuple[str, str], ...]] = (
    (r"order DescribeProducers ", "the order is that of their ids, which two clusters give out"),
    (r"AddPartitionsToTxn v[45] none ", "Kafka never answers a request without transactions"),
    (r"InitProducerId v0 ", "the first ids of a broker take a moment"),
    (r"Produce v\d+ null ", "Kafka fails at null records and never answers"),
    (r"batch_length 2147483647", "Kafka's sum of sizes overflows"),
    (r"-\w+ length max ", "Kafka takes memory for what a length says, and runs out of it"),
    (r"ListOffsets .*(time -[34]000|committed at)", "segments without times hide none behind them"),
    (
        r"(CreateTopics|Metadata) v\d+ (after )?alike in one",
        "Kafka's order is a hash's",
    ),
    (r"\.topic_id$", "ids without a name are told apart by order alone"),
    (r"DeleteTopics v6 (two ids|the same id)", "a deleted topic's id is forgotten a moment later"),
    (
        r"AlterConfigs v\d+ broker .* reporters |after '1?' reporters ",
        "no classes of Java are loaded",
    ),
    (r"IncrementalAlterConfigs v\d+ logger ", "loggers are those of the process"),
    (r"DescribeConfigs v\d+ root .*\.value$", "levels are those of the process"),
    (r"broker .* throttle operation 2", "a rate is no list"),
    (r"Produce v\d+ of transaction ", "Kafka's answer is another before its coordinator is there"),
    (r"AlterConfigs v\d+ topic twice", "Kafka fails at a resource named twice and never answers"),
    (r"Fetch v[0-3] read back $", "Kafka ends the connection at what it cannot convert"),
    (r"Fetch v3 read back .*records", "records compressed again, by another library"),
    (r"Frames tags .*many", "a count of tags beyond 2^31 is none to Java"),
)

#: Of drawn requests alone.
ACCEPTED_OF_DRAWN: Final[tuple[tuple[str, str], ...]] = (
    (r"OffsetFetch v[89] .*'groups': \[\]", "Kafka never answers a request without groups"),
    (r"DescribeLogDirs .*partition_size", "what is old is deleted at times of their own"),
    (
        r"order (Produce|DescribeLogDirs|DeleteRecords|DeleteGroups|ElectLeaders"
        r"|UpdateFeatures|Alter\w+) v\d+ [0-9]+\.[0-9]+ ",
        "the order is that of hash maps, which no client goes by",
    ),
)


def accepted(found: Difference) -> str | None:
    """Return why a difference is accepted, None if it is not."""
    return next(
        (reason for pattern, reason in ACCEPTED + ACCEPTED_OF_DRAWN if _is_of(pattern, found)), None
    )


def unseen(found: Iterable[Difference]) -> list[str]:
    """Return the patterns that match nothing: what is accepted in vain may hide what is new."""
    seen = list(found)
    return [pattern for pattern, _ in ACCEPTED if not any(_is_of(pattern, one) for one in seen)]


def _is_of(pattern: str, found: Difference) -> bool:
    return re.search(pattern, f"{found.kind} {found.label} {found.path}") is not None
