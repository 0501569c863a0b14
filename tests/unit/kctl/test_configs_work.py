"""Settings as rows for people and for programs."""

from __future__ import annotations

import pytest

from kctl.commands.configs.settings import plain_text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("a <code>b.c</code> d", "a b.c d"),
        ('see <a href="http://x/#y">there</a>.<p>Then', "see there. Then"),
        ("host:<port> &lt;b&gt; stays", "host:<port> <b> stays"),
        ("one%n two", "one two"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_documentation_loses_its_tags_for_people(markup: str, text: str) -> None:
    assert text == plain_text(markup)
