"""Selects topics and partitions by their names on the command line.

| selector | partitions |
|---|---|
| `clicks` | all |
| `clicks:3` | one |
| `clicks:0,4-6` | some; ranges include their ends |

Names are literal: `a.b` does not select `axb`. `--match` takes a regular expression, which has to
match the whole name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from engine.client.blocking import KafkaClient
from engine.client.metadata import ClusterView, TopicView, topic_failure
from engine.errors import ApiError, EngineError
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.hints import did_you_mean
from kctl.numbers import INT32_MAX, read_whole

# More than any topic has; a typing error must not fill the memory.
_PARTITIONS_MAX = 1_000_000


class NoSelector(EngineError):
    """Neither names nor a pattern are given."""

    exit_code = exits.USAGE
    hint = "name topics, or choose them with --match REGEX"

    def __init__(self) -> None:
        super().__init__("which topics? None is named")


class NoTopicMatches(EngineError):
    """A pattern matches no topic."""

    hint = "the pattern must match whole names; `kctl topics list -o name` shows them"

    def __init__(self, pattern: str, names: Iterable[str] = ()) -> None:
        super().__init__(f"no topic matches {pattern!r}")
        self.pattern = pattern
        if any(fnmatchcase(name, pattern) for name in names):
            expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
            self.hint = f"it is a regular expression: {expression!r} matches as a shell's pattern"


class BadPattern(EngineError):
    """A pattern is not a regular expression."""

    exit_code = exits.USAGE
    hint = "'.*' matches everything, 'app-.*' what starts with app-; '\\.' is a dot"

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"not a regular expression: {pattern!r}: {reason}")
        self.pattern = pattern


def name_matcher(pattern: str) -> re.Pattern[str]:
    """Return the compiled regular expression of a --match option; raises BadPattern."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise BadPattern(pattern, str(error)) from None


def select_topics(
    client: KafkaClient, names: Sequence[str], pattern: str | None, *, else_all: bool = False
) -> tuple[ClusterView, list[TopicView], list[EngineError]]:
    """Return the cluster, the topics that are named or match, and an error for each missing one.

    `names` are topics on the command line, `pattern` is --match. With `else_all` all topics are
    returned if neither is given, which may be an empty list.

    Errors: NoSelector, NoTopicMatches, BadPattern.
    """
    if pattern is None:
        if not names and not else_all:
            raise NoSelector
        if not names:
            view = client.view(None)
            return view, [view.topics[name] for name in sorted(view.topics)], []
        view = client.view(names)
        failures: list[EngineError] = []
        topics = []
        for name in dict.fromkeys(names):
            failure = topic_failure(view, name)
            if failure is None:
                topics.append(view.topics[name])
            else:
                failures.append(failure)
        add_similar_topic_hints(client, failures, names)
        return view, topics, failures
    matcher = name_matcher(pattern)
    view = client.view(None)
    topics = [view.topics[n] for n in sorted(view.topics) if n in names or matcher.fullmatch(n)]
    if not topics:
        raise NoTopicMatches(pattern, view.topics)
    # A named topic must exist, also together with a pattern.
    absent: list[EngineError] = [
        failure for name in dict.fromkeys(names) if (failure := topic_failure(view, name))
    ]
    add_similar_topic_hints(client, absent, names)
    return view, topics, absent


def add_similar_topic_hints(
    client: KafkaClient, failures: Iterable[EngineError], names: Iterable[str]
) -> None:
    """Add a hint at the topic with the most similar name to each UNKNOWN_TOPIC_OR_PARTITION.

    `names` are the names on the command line: the detail of an error begins with one of them.
    Topics are requested only if there is such an error.
    """
    unknown = [
        error
        for error in failures
        if isinstance(error, ApiError) and error.code == UNKNOWN_TOPIC_OR_PARTITION
    ]
    if not unknown:
        return
    topic_names = client.view(None).topics
    wanted = list(names)
    for error in unknown:
        name = next((name for name in wanted if error.detail.startswith(f"{name}: ")), "")
        question = did_you_mean(name, topic_names)
        if question:
            error.hint = f"{question} `kctl topics list` shows what there is"


def select_partitions(
    client: KafkaClient, selectors: Iterable[str]
) -> tuple[ClusterView, list[TopicPartition], list[EngineError]]:
    """Return the cluster, the partitions of selectors, and an error for each unknown topic.

    A selector is TOPIC or TOPIC:PARTITIONS. Partitions are sorted within a topic; numbers are not
    checked against the topic.
    """
    named: dict[str, set[int] | None] = {}
    for selector in selectors:
        topic, numbers = parse_partitions(selector)
        chosen = named.get(topic, set())
        named[topic] = None if numbers is None or chosen is None else chosen | numbers
    view = client.view(named)
    partitions: list[TopicPartition] = []
    failures: list[EngineError] = []
    for topic, wanted in named.items():
        failure = topic_failure(view, topic)
        if failure is not None:
            failures.append(failure)
            continue
        numbers = wanted
        if numbers is None:
            numbers = {p.partition for p in view.topics[topic].partitions}
        partitions += [TopicPartition(topic, number) for number in sorted(numbers)]
    add_similar_topic_hints(client, failures, named)
    return view, partitions, failures


def matching_topics(
    client: KafkaClient, selectors: Sequence[str], pattern: str | None
) -> list[str]:
    """Return the selectors, and the topics that match --match but are in no selector.

    Without a pattern it returns the selectors, without a request.

    Errors: NoSelector, NoTopicMatches, BadPattern.
    """
    if pattern is None:
        if not selectors:
            raise NoSelector
        return list(selectors)
    matcher = name_matcher(pattern)
    topics = client.view(None).topics
    named = {parse_partitions(selector)[0] for selector in selectors}
    matching = [name for name in sorted(topics) if matcher.fullmatch(name)]
    if not matching:
        raise NoTopicMatches(pattern, topics)
    return [*selectors, *(name for name in matching if name not in named)]


def parse_partitions(selector: str) -> tuple[str, set[int] | None]:
    """Return the topic and the partitions of a selector such as clicks:0,4-6.

    The partitions are None for a topic alone, which means all.

    Errors: UnreadableArgument.
    """
    topic, colon, ranges = selector.partition(":")
    if not topic:
        raise UnreadableArgument("a topic", selector, "TOPIC or TOPIC:PARTITIONS")
    return topic, parse_numbers(ranges) if colon else None


def parse_numbers(text: str) -> set[int]:
    """Return the partition numbers in a list such as 0,4-6, ends included.

    Errors: UnreadableArgument.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = read_whole(first), read_whole(last if dash else first)
        if low is None or high is None or not 0 <= low <= high <= INT32_MAX:
            low, high = 1, 0
        if high < low or high - low > _PARTITIONS_MAX:
            raise UnreadableArgument("a list of partitions", text, "numbers such as 0,4-6")
        numbers.update(range(low, high + 1))
    return numbers
