"""The documentation of each key, in a few sentences for operators; loaded when it is needed.

The tables `tables/documentation_*.py` are text:

```
log.dirs                                  a key
    Directories of logs, with commas      its sentences, indented, on as many lines as they need
    between them; ...
```

A broker's key that gives topics a default has the topic's sentences. Where the embedded broker
differs, `documentation_here.py` adds a sentence.

Source: the set of keys that Kafka documents: all of its tables, none with a listener's prefix, of a
plug-in, or that can be set only at run time.
Differs: the words are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from engine.config.key import UpdateMode, broker_keys, topic_keys


@cache
def topic_documentation() -> Mapping[str, str]:
    """Return the sentences of each key of a topic."""
    from engine.config.tables.documentation_topics import TOPIC_TEXTS

    return {name: _with_note(name, text) for name, text in _entries(TOPIC_TEXTS)}


@cache
def broker_documentation() -> Mapping[str, str]:
    """Return the sentences of each key of a broker that Kafka documents."""
    from engine.config.tables.documentation_cluster import CLUSTER_TEXTS
    from engine.config.tables.documentation_groups import GROUP_TEXTS
    from engine.config.tables.documentation_kraft import KRAFT_TEXTS
    from engine.config.tables.documentation_logs import LOG_TEXTS
    from engine.config.tables.documentation_network import NETWORK_TEXTS
    from engine.config.tables.documentation_remote import REMOTE_TEXTS
    from engine.config.tables.documentation_security import SECURITY_TEXTS
    from engine.config.tables.documentation_topics import TOPIC_TEXTS

    texts = dict(_defaults_of_topics(dict(_entries(TOPIC_TEXTS))))
    for table in (
        CLUSTER_TEXTS,
        GROUP_TEXTS,
        KRAFT_TEXTS,
        LOG_TEXTS,
        NETWORK_TEXTS,
        REMOTE_TEXTS,
        SECURITY_TEXTS,
    ):
        texts.update(_entries(table))
    return {
        name: _with_note(name, texts[name])
        for name, key in broker_keys().items()
        if key.update_mode is not UpdateMode.DYNAMIC_ONLY
    }


def _defaults_of_topics(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the sentences of each key of brokers that is a default of topics."""
    for name, key in topic_keys().items():
        for synonym in key.broker_synonyms[:1]:
            yield synonym, f"Holds for topics that do not set {name} themselves. {texts[name]}"


def _with_note(name: str, text: str) -> str:
    """Return a key's sentences, with the added one of the first pattern that fits the key."""
    note = next((note for pattern, note in _notes() if _fits(name, pattern)), None)
    return text if note is None else f"{text} {note}"


def _fits(name: str, pattern: str) -> bool:
    """Return whether a key has a name; `*` at the end of a pattern is any rest of a name."""
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern


@cache
def _notes() -> tuple[tuple[str, str], ...]:
    """Return key patterns with the sentences added to their documentation; first match counts."""
    from engine.config.tables.documentation_here import HERE_TEXTS

    return tuple(
        (pattern, note) for note, patterns in _entries(HERE_TEXTS) for pattern in patterns.split()
    )


def _entries(table: str) -> Iterator[tuple[str, str]]:
    """Yield the flush lines of a table with the indented lines below each."""
    head, body = "", [""]
    for line in table.splitlines():
        if line.startswith(" "):
            body.append(line.strip())
            continue
        if head:
            yield head, " ".join(body)
        head, body = line, []
    yield head, " ".join(body)
