"""The documentation of each key in a few sentences, loaded on first use.

The tables `tables/documentation_*.py` are text:

```
log.dirs                                  a key
    Directories of logs, with commas      its sentences, indented, on one or more lines
    between them; ...
```

The documentation of a broker key that is a topic default is taken from the topic key. If the
embedded broker differs, `documentation_here.py` adds a sentence.

Source: the set of keys that Kafka documents: all of its tables, without keys that have a listener's
prefix, belong to a plug-in, or can be set only at run time.
Differs: the texts are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from engine.config.key import UpdateMode, broker_keys, topic_keys


@cache
def topic_documentation() -> Mapping[str, str]:
    """Return the documentation of each topic key, with the engine's notes."""
    from engine.config.tables.documentation_topics import TOPIC_TEXTS

    return {name: _with_note(name, text) for name, text in _iter_entries(TOPIC_TEXTS)}


@cache
def broker_documentation() -> Mapping[str, str]:
    """Return the documentation of each broker key that Kafka documents, with the engine's notes."""
    from engine.config.tables.documentation_cluster import CLUSTER_TEXTS
    from engine.config.tables.documentation_groups import GROUP_TEXTS
    from engine.config.tables.documentation_kraft import KRAFT_TEXTS
    from engine.config.tables.documentation_logs import LOG_TEXTS
    from engine.config.tables.documentation_network import NETWORK_TEXTS
    from engine.config.tables.documentation_remote import REMOTE_TEXTS
    from engine.config.tables.documentation_security import SECURITY_TEXTS
    from engine.config.tables.documentation_topics import TOPIC_TEXTS

    texts = dict(_defaults_of_topics(dict(_iter_entries(TOPIC_TEXTS))))
    for table in (
        CLUSTER_TEXTS,
        GROUP_TEXTS,
        KRAFT_TEXTS,
        LOG_TEXTS,
        NETWORK_TEXTS,
        REMOTE_TEXTS,
        SECURITY_TEXTS,
    ):
        texts.update(_iter_entries(table))
    return {
        name: _with_note(name, texts[name])
        for name, key in broker_keys().items()
        if key.update_mode is not UpdateMode.DYNAMIC_ONLY
    }


def _defaults_of_topics(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each broker key that sets the default of a topic key, with its documentation."""
    for name, key in topic_keys().items():
        for synonym in key.broker_synonyms[:1]:
            yield synonym, f"Holds for topics that do not set {name} themselves. {texts[name]}"


def _with_note(name: str, text: str) -> str:
    """Return a key's documentation followed by the engine's note about it, if there is one."""
    note = next(
        (note for pattern, note in _engine_notes() if _matches_pattern(name, pattern)), None
    )
    return text if note is None else f"{text} {note}"


def _matches_pattern(name: str, pattern: str) -> bool:
    """Return True if a key matches a pattern: a key's name, or its beginning and `*`."""
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern


@cache
def _engine_notes() -> tuple[tuple[str, str], ...]:
    """Return (pattern, note) pairs about where the engine differs; the first match counts."""
    from engine.config.tables.documentation_here import HERE_TEXTS

    return tuple(
        (pattern, note)
        for note, patterns in _iter_entries(HERE_TEXTS)
        for pattern in patterns.split()
    )


def _iter_entries(table: str) -> Iterator[tuple[str, str]]:
    """Yield the entries of a table: each unindented line with the indented text below it."""
    head, body = "", [""]
    for line in table.splitlines():
        if line.startswith(" "):
            body.append(line.strip())
            continue
        if head:
            yield head, " ".join(body)
        head, body = line, []
    yield head, " ".join(body)
