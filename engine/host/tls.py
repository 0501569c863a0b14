"""TLS of outgoing connections: its files, and the meaning of its failures.

| failure | reported as |
|---|---|
| a file: missing, no PEM, Java's own format, another password | BadTlsFile, before connecting |
| the name in the broker's certificate, its dates, who signed it | a sentence for each |
| no TLS on the other side: it closes, or responds with other bytes | that |
| an alert of the broker, as for a certificate that it requires | that |

Source: OpenSSL's verification codes (x509_vfy.h) and TLS's alerts (RFC 8446 §6).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import StorageError
from engine.host.streams import TlsSettings

if TYPE_CHECKING:
    import ssl

_USAGE_EXIT = 2
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
# PKCS #12 is DER: a sequence with a length of two bytes.
_DER_MAGIC = b"\x30\x82"
_HEAD_BYTES = 4
_PEM_MARK = b"-----BEGIN "

_NOT_YET_VALID, _EXPIRED = 9, 10
_OTHER_HOST, _OTHER_ADDRESS = 62, 64
#: OpenSSL's reasons for a peer that does not speak TLS.
_NO_TLS = frozenset(
    (
        "UNEXPECTED_EOF_WHILE_READING",
        "WRONG_VERSION_NUMBER",
        "PACKET_LENGTH_TOO_LONG",
        "HTTP_REQUEST",
        "RECORD_LAYER_FAILURE",
    )
)
_NO_COMMON = frozenset(("SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV1_ALERT_PROTOCOL_VERSION"))
#: Alerts by which a broker rejects our certificate, or the lack of one.
_ABOUT_OUR_CERTIFICATE = (
    "CERTIFICATE_REQUIRED",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_UNKNOWN_CA",
    "ALERT_CERTIFICATE_EXPIRED",
    "ALERT_CERTIFICATE_UNKNOWN",
)


class BadTlsFile(StorageError):
    """A file needed for TLS cannot be used."""

    exit_code = _USAGE_EXIT
    hint = "correct it in the file that --command-config names"

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        if hint is not None:
            self.hint = hint


class Failure(NamedTuple):
    """The reason for a failed connection, and its remedy."""

    reason: str
    hint: str | None = None


def tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context for settings; raises BadTlsFile."""
    import ssl

    for path in (tls.ca_path, tls.certificate_path, tls.key_path):
        if path is not None:
            _check_pem(path)
    try:
        context = ssl.create_default_context(cafile=tls.ca_path, cadata=tls.ca_pem)
    except (ssl.SSLError, ValueError) as error:
        where = tls.ca_path or "ssl.truststore.certificates"
        raise BadTlsFile(where, "holds no certificate that can be read") from error
    if not tls.verifies_host:
        context.check_hostname = False
    if tls.certificate_path is not None:
        _load_own_certificate(context, tls)
    return context


def _check_pem(path: str) -> None:
    """Raise BadTlsFile unless a file is PEM: OpenSSL names neither the file nor its format."""
    if os.path.isdir(path):
        raise BadTlsFile(path, "is a directory, and must be a PEM file")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BadTlsFile(path, f"cannot be read: {error.strerror}") from error
    if _PEM_MARK in content:
        return
    head = content[:_HEAD_BYTES]
    if head in (_JKS_MAGIC, _JCEKS_MAGIC) or head.startswith(_DER_MAGIC):
        kind = "PKCS12" if head.startswith(_DER_MAGIC) else "JKS"
        raise BadTlsFile(
            path,
            f"is in Java's format {kind}, and must be a PEM file",
            f"`keytool -list -rfc -keystore {path}` prints trusted certificates as PEM; "
            "`openssl pkcs12 -in STORE.p12 -nodes` a key with its certificate",
        )
    raise BadTlsFile(path, "is no PEM file: it has no line of -----BEGIN …")


def _load_own_certificate(context: ssl.SSLContext, tls: TlsSettings) -> None:
    import ssl

    assert tls.certificate_path is not None
    key_path = tls.key_path or tls.certificate_path
    try:
        # Without a password OpenSSL would ask for it on the terminal.
        context.load_cert_chain(tls.certificate_path, tls.key_path, tls.key_password or "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = f"is not the key of the certificate in {tls.certificate_path}"
            raise BadTlsFile(key_path, reason) from error
        raise BadTlsFile(key_path, _wrong_with_key(key_path, tls.key_password)) from error


def _wrong_with_key(path: str, password: str | None) -> str:
    with open(path, "rb") as file:
        content = file.read()
    if b"PRIVATE KEY-----" not in content:
        return "has no private key; ssl.key.location names its file"
    if b"ENCRYPTED" in content:
        return "ssl.key.password does not open it" if password else "needs ssl.key.password"
    return "holds no private key or certificate that can be read"


def tls_failure(error: OSError, tls: TlsSettings | None, *, is_handshake: bool) -> Failure:
    """Return the meaning of an error on a connection."""
    code = getattr(error, "verify_code", None)
    if code:
        return _certificate_failure(code, str(getattr(error, "verify_message", "")))
    reason = str(getattr(error, "reason", None) or "")
    is_cut = isinstance(error, ConnectionResetError) or type(error).__name__ == "SSLEOFError"
    if is_handshake and (reason in _NO_TLS or is_cut):
        return Failure(
            "the other side does not speak TLS",
            "set security.protocol to PLAINTEXT or SASL_PLAINTEXT if its listener has no TLS",
        )
    if reason in _NO_COMMON:
        return Failure("TLS: no version or cipher that both sides accept")
    if any(alert in reason for alert in _ABOUT_OUR_CERTIFICATE):
        return _refused_us(reason, has_certificate=bool(tls and tls.certificate_path))
    text = error.strerror or str(error)
    return Failure(f"TLS: {text}" if is_handshake else text)


def _certificate_failure(code: int, message: str) -> Failure:
    """Return what is wrong with the broker's certificate, by OpenSSL's code."""
    message = message.rstrip(".")
    if code in (_OTHER_HOST, _OTHER_ADDRESS):
        return Failure(
            f"the broker's certificate is for another host: {message}",
            "connect by a name that is in the certificate; an empty "
            "ssl.endpoint.identification.algorithm leaves the name unchecked",
        )
    if code == _EXPIRED:
        return Failure("the broker's certificate has expired", "renew it on the broker")
    if code == _NOT_YET_VALID:
        return Failure(
            "the broker's certificate is not valid yet", "check the clocks of this machine and it"
        )
    return Failure(
        f"the broker's certificate is not trusted: {message}",
        "ssl.truststore.location names the PEM file of the CA that signed it",
    )


def _refused_us(reason: str, *, has_certificate: bool) -> Failure:
    if not has_certificate:
        return Failure(
            "the broker asks for a certificate of ours, and there is none",
            "ssl.keystore.location and ssl.key.location name it and its key",
        )
    alert = reason.rpartition("ALERT_")[2].lower().replace("_", " ")
    return Failure(
        f"the broker does not accept our certificate: {alert}",
        "it must be signed by a CA that the broker trusts",
    )
