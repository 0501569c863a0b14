"""Properties files as Java reads and writes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.config.java_properties import encode_settings, parse_properties

_KEYS = st.sampled_from(["a", "sasl.jaas.config", "ssl.truststore.location"])
_TEXTS = st.text(
    st.sampled_from(' \t\n\r\f\\=:#!"ab\xe9\u03bb\U0001f600') | st.characters(), max_size=9
)


@given(st.dictionaries(_KEYS, _TEXTS))
def test_settings_are_read_as_they_were_written(settings: dict[str, str]) -> None:
    assert settings == parse_properties(encode_settings(settings), "x")


def test_settings_are_written_as_by_hand() -> None:
    settings = {"b": 'required name="a:b#c!";', "a": " \\\n\xe9"}
    assert b'b=required name="a:b#c!";\na=\\ \\\\\\n\\u00E9\n' == encode_settings(settings)


def test_a_character_of_two_escapes_is_one() -> None:
    """Java writes what is beyond 16 bits as a pair; half of one stays as it is."""
    assert {"a": "\U0001f600", "b": "\ude00"} == parse_properties(
        b"a=\\ud83d\\ude00\nb=\\ude00\n", "x"
    )
