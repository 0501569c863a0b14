"""Ciphers by Java's names."""

from __future__ import annotations

import ssl

import pytest

from engine.host.tls_ciphers import BadCiphers, choose_ciphers

_BOTH = ("TLSv1.2", "TLSv1.3")
_OF_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
_GCM = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


@pytest.mark.parametrize(
    ("names", "versions", "left", "of_1_2"),
    [
        ((), _BOTH, _BOTH, None),
        (("TLS_EMPTY_RENEGOTIATION_INFO_SCSV",), _BOTH, _BOTH, None),
        (_OF_1_3, _BOTH, ("TLSv1.3",), None),
        ((_GCM,), _BOTH, ("TLSv1.2",), "ECDHE-RSA-AES256-GCM-SHA384"),
        ((*_OF_1_3, _GCM), _BOTH, _BOTH, "ECDHE-RSA-AES256-GCM-SHA384"),
        # Of a version that is not set none is needed.
        ((_OF_1_3[0], _GCM), ("TLSv1.2",), ("TLSv1.2",), "ECDHE-RSA-AES256-GCM-SHA384"),
        ((_GCM, _GCM), ("TLSv1.2",), ("TLSv1.2",), "ECDHE-RSA-AES256-GCM-SHA384"),
    ],
)
def test_ciphers_choose_versions_too(
    names: tuple[str, ...], versions: tuple[str, ...], left: tuple[str, ...], of_1_2: str | None
) -> None:
    assert (left, of_1_2) == choose_ciphers(names, versions)


@pytest.mark.parametrize(
    ("names", "versions", "why"),
    [
        (_OF_1_3[:2], _BOTH, "must have all of TLS 1.3 or none"),
        (_OF_1_3, ("TLSv1.2",), "has no cipher of TLSv1.2"),
        ((_GCM,), ("TLSv1.3",), "has no cipher of TLSv1.3"),
        ((*_OF_1_3, "SSL_RSA_WITH_RC4_128_MD5"), _BOTH, "OpenSSL has no SSL_RSA_WITH_RC4_128_MD5"),
        (("TLS_ECDHE_RSA_WITH_RC4_128_SHA",), _BOTH, "OpenSSL has no TLS_ECDHE_RSA_WITH_RC4"),
        (("ECDHE-RSA-AES256-GCM-SHA384",), _BOTH, "OpenSSL has no ECDHE-RSA"),
    ],
)
def test_what_openssl_does_not_have_is_refused(
    names: tuple[str, ...], versions: tuple[str, ...], why: str
) -> None:
    with pytest.raises(BadCiphers, match=why):
        choose_ciphers(names, versions)


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
    ],
)
def test_a_name_is_that_of_the_same_cipher(java: str, openssl: str) -> None:
    assert choose_ciphers((java,), _BOTH).of_1_2 == openssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(openssl)
    assert openssl in {cipher["name"] for cipher in context.get_ciphers()}
