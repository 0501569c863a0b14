"""Passwords are encrypted as brokers of Kafka do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ConfigError
from engine.host.memory import SeededEntropy
from engine.security.password_encoder import (
    EncoderSettings,
    NoCipher,
    PasswordEncoder,
    PasswordUnreadable,
)

#: As a broker of 3.9.1 wrote the password "other" with the secret "encoder-secret".
OF_KAFKA = (
    "initializationVector:yN0i0IjCTneVVw11ePtdjA==,keyLength:128,salt:rspr3ClIa7fMvASXe+odTeI"
    "UmFkSFgxYAScL9x8TntHFlXAfpOO5SxeXmVwLNMiOJlqjIdY4Km79KdS47SlLk8HllUKjMVvRUEVyLkOJ8/TigOn"
    "UHEjOrdLzgZ4LMmbZQP4+YlE1ioxcLH6FYF6KoeBjO16BAaRmZdFwUID3nsduEvgvz+F3lH7EqZxyCUhMG+ruhWY"
    "R6/tEV6LSo45r+HUM9DwRlTXCR8zgCvNSTscOTVQ6x4xDe/Wml52xcFhVAep1CWcyQjwjL54CDoSE5bIL6BNuAAk"
    "lpGzskhDpInHns6g+Eie1HODeosUgSRFar4O3grDhHgPr6y3kMIYw7g==,keyFactoryAlgorithm:PBKDF2With"
    "HmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:5,encrypt"
    "edPassword:Ucb0YO3obaKtlzirGLcAcw=="
)

#: As the same class wrote a password with a character of two UTF-16 units; the secret is "s".
OF_TWO_UNITS = (
    "initializationVector:XEDgQWSrrbaeolkxe0DkfQ==,keyLength:128,salt:03CCjDGiBS2lancV0yBvKXA2q"
    "zJrF+TG3RXGI32rYGZtw+4/SSVoErAkIl5ujy8+TnfK/Vig8RihRxUzLqkPkozHPyDIkUrTcU1yCHDl8mMB8NKTRLF"
    "kKt9ERvPgwDqXjJFylcUoIldBnDkWB4QV2U0j+5OuNfhXrnudmaszQb17C5ux9zv51kDdjrRPoKI7kD/nEsEvbML9B"
    "dolL1H1VO1JIOCyA9T/IS2LrC21nPDE7YqIGntAOCFzHaThQAIs51Qj1fM0500RkspGCmjjhhvOQX++wS3xD0Sb71E"
    "A/1nfOT6p9ypwIEh3jcMevY4sapSstmO2glxpfb9AT39OIw==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512"
    ",cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:3,encryptedPassword:0"
    "y3Syu8ZeBf4+UKiu9DY6g=="
)


def encoder(secret: str = "encoder-secret", **more: int) -> PasswordEncoder:
    settings = EncoderSettings(secret, **{"iterations": 1024, **more})  # type: ignore[arg-type]
    return PasswordEncoder(settings, SeededEntropy(1))


def test_what_kafka_encrypted_is_read() -> None:
    assert "other" == encoder().decode(OF_KAFKA)


def test_lengths_are_those_of_java() -> None:
    assert "\U0001f600x" == encoder("s").decode(OF_TWO_UNITS)
    assert "passwordLength:3," in encoder("s").encode("\U0001f600x")


def test_what_is_written_has_kafkas_fields() -> None:
    text = encoder(iterations=4096).encode("other")
    fields, expected = (
        [part.partition(":") for part in each.split(",")] for each in (text, OF_KAFKA)
    )
    assert [name for name, _, _ in expected] == [name for name, _, _ in fields]
    plain = ("keyLength", "keyFactoryAlgorithm", "cipherAlgorithm", "iterations", "passwordLength")
    for (name, _, value), (_, _, of_kafka) in zip(fields, expected, strict=True):
        assert len(of_kafka) == len(value)
        assert name not in plain or of_kafka == value


def test_one_iteration_is_the_least() -> None:
    once = encoder(iterations=1).encode("other")
    assert "other" == encoder().decode(once)
    with pytest.raises(PasswordUnreadable, match="or is damaged"):
        encoder().decode(once.replace("iterations:1", "iterations:0"))


@given(password=st.text(max_size=40))
def test_what_is_encrypted_comes_back(password: str) -> None:
    assert password == encoder().decode(encoder(key_bits=256).encode(password))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        OF_KAFKA.replace("passwordLength:5", "passwordLength:6"),
        OF_KAFKA.replace("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"),
        OF_KAFKA.replace("iterations:4096", "iterations:99999999999"),
        OF_KAFKA.replace("encryptedPassword:", "encryptedPassword:AAAA"),
        OF_KAFKA.replace("salt:", "salz:"),
    ],
)
def test_what_is_no_encrypted_password_is_refused_without_a_word_of_it(text: str) -> None:
    with pytest.raises(PasswordUnreadable) as refused:
        encoder().decode(text)
    assert "secret" not in str(refused.value).replace("another secret", "")


def test_another_secret_reads_nothing() -> None:
    with pytest.raises(PasswordUnreadable):
        encoder("another").decode(OF_KAFKA)


@pytest.mark.parametrize(
    "settings",
    [
        EncoderSettings("s", cipher="DES/CBC/PKCS5Padding"),
        EncoderSettings("s", key_factory="PBEWithMD5AndDES"),
        EncoderSettings("s", key_bits=64),
    ],
)
def test_algorithms_that_are_not_there_are_refused(settings: EncoderSettings) -> None:
    with pytest.raises(ConfigError):
        settings.check()
    EncoderSettings("s", key_factory="PBKDF2WithHmacSHA1").check()


def test_without_the_package_it_is_named() -> None:
    assert "cryptography" in str(NoCipher())
