"""What a JAAS text says, as Kafka reads it."""

from __future__ import annotations

import pytest

from engine.security.jaas import JaasRefused, parse_jaas_entry, parse_jaas_sections

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_an_entry_is_a_module_a_flag_and_options() -> None:
    entry = parse_jaas_entry(f'{_PLAIN} required username="admin" password=secret user_a.b-c="x";')
    assert _PLAIN == entry.login_module
    assert {"username": "admin", "password": "secret", "user_a.b-c": "x"} == entry.options


def test_quotes_of_both_kinds_hold_anything_and_backslashes_escape() -> None:
    entry = parse_jaas_entry("""M required a="x;=\\"y\\\\" b='it"s' c="tab\\t" d="ü";""")
    assert {"a": 'x;="y\\', "b": 'it"s', "c": "tab\t", "d": "ü"} == entry.options


def test_comments_and_lines_are_passed_over() -> None:
    text = "M // who\n REQUIRED /* more\n than a line */ a=b\n\n ;"
    assert {"a": "b"} == parse_jaas_entry(text).options


def test_no_password_shows_in_a_repr() -> None:
    assert "secret" not in repr(parse_jaas_entry('M required password="secret";'))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Login module not specified"),
        ("M", "control flag not specified"),
        ("M maybe;", "Invalid login module control flag"),
        ("M required a", "Value not specified for key 'a'"),
        ("M required a=;", "Value not specified for key 'a'"),
        # A number is no word to Java.
        ("M required a=12;", "Value not specified for key 'a'"),
        ("M required a=b", "not terminated by semi-colon"),
        ("M required; N required;", "2 login modules"),
    ],
)
def test_what_is_wrong_is_said_without_the_text(text: str, reason: str) -> None:
    with pytest.raises(JaasRefused, match=reason):
        parse_jaas_entry(text)


def test_a_file_has_sections_of_entries() -> None:
    text = """// of brokers
    KafkaServer { M required a=b; N optional c="d"; };
    Client {
        D required username="kafka" password="secret";
    };
    Empty { };"""
    sections = parse_jaas_sections(text)
    assert [*sections] == ["KafkaServer", "Client", "Empty"]
    assert [entry.login_module for entry in sections["KafkaServer"]] == ["M", "N"]
    assert {"username": "kafka", "password": "secret"} == sections["Client"][0].options
    assert {} == parse_jaas_sections("  /* nothing */ ")


@pytest.mark.parametrize(
    "text",
    [
        "Client",
        "Client M required;",
        "{ M required; };",
        "Client { M required; }",
        "Client { M required; } Server {};",
        "Client { M required;",
        "Client { M required password=secret };",
        "Client { M; };",
        "Client { M required; }; Client { M required; };",
    ],
)
def test_a_file_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(JaasRefused) as refused:
        parse_jaas_sections(text)
    assert "secret" not in str(refused.value)
