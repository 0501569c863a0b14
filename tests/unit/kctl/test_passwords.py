"""Where passwords come from."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kctl.passwords import NoPassword, PasswordOptions, check_password_options, read_password


class Terminal(io.StringIO):
    """A stdin that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (PasswordOptions("f", "V"), "one source"),
        (PasswordOptions("f", generate=True), "one source"),
        (PasswordOptions("f", out="o"), "--out goes with"),
        (PasswordOptions(), "no terminal"),
    ],
)
def test_options_that_are_not_clear_are_refused(options: PasswordOptions, message: str) -> None:
    with pytest.raises(NoPassword, match=message):
        check_password_options(options)


def test_a_password_is_typed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal())
    check_password_options(PasswordOptions())
    typed = ["one", "one", "one", "two"]
    monkeypatch.setattr("getpass.getpass", lambda prompt, stream: typed.pop(0))
    assert "one" == read_password(PasswordOptions(), "ann")
    with pytest.raises(NoPassword, match="differ"):
        read_password(PasswordOptions(), "ann")


def test_the_first_line_is_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p"
    path.write_bytes("pä ss\r\nmore".encode())
    assert "pä ss" == read_password(PasswordOptions(str(path)), "ann")
    monkeypatch.setattr("sys.stdin", io.StringIO("piped\n"))
    assert "piped" == read_password(PasswordOptions("-"), "ann")


@pytest.mark.parametrize("content", [b"", b"\nx", b"\xff\n"])
def test_an_empty_or_unreadable_file_has_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p").write_bytes(content)
    with pytest.raises(NoPassword):
        read_password(PasswordOptions(str(tmp_path / "p")), "ann")


def test_a_variable_has_to_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PASSWORD", "x")
    assert "x" == read_password(PasswordOptions(password_env="APP_PASSWORD"), "ann")
    with pytest.raises(NoPassword, match="has no OTHER"):
        read_password(PasswordOptions(password_env="OTHER"), "ann")
