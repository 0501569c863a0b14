"""TLS of outgoing connections: its files, and the meaning of its failures.

| failure | reported as |
|---|---|
| a file: missing, of another kind, another password | BadTlsFile, before connecting |
| the name in the broker's certificate, its dates, who signed it | a sentence for each |
| no TLS on the other side: it closes, or responds with other bytes | that |
| an alert of the broker, as for a certificate that it requires | that |

Source: OpenSSL's verification codes (x509_vfy.h) and TLS's alerts (RFC 8446 §6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.host.streams import Failure, TlsSettings
from engine.host.tls_stores import (
    BadTlsFile,
    PrivateKey,
    ascii_pem,
    is_java_store,
    load_key,
    read_store_file,
    read_stored_certificates,
    read_stored_key,
)

if TYPE_CHECKING:
    import ssl

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


def create_tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context of a client for these settings; raises BadTlsFile."""
    import ssl

    trusted = None if tls.ca_path is None else _read_trusted(tls.ca_path, tls.ca_password)
    given = None if tls.ca_pem is None else ascii_pem(tls.ca_pem)
    try:
        context = ssl.create_default_context(cadata=given if trusted is None else trusted)
        if trusted is not None and given is not None:
            context.load_verify_locations(cadata=given)
    except (ssl.SSLError, ValueError) as error:
        where = tls.ca_path or "ssl.truststore.certificates"
        raise BadTlsFile(where, "holds no certificate that can be read") from error
    # From Python 3.13 on the default context requires all of RFC 5280, which Java and OpenSSL do
    # not: the CA certificates of many clusters have no key usage.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not tls.verifies_host:
        context.check_hostname = False
    if tls.has_certificate:
        _load_own_certificate(context, tls)
    return context


def _read_trusted(path: str, password: str | None) -> str | bytes:
    """Return the certificates of a trust store as PEM or DER; raises BadTlsFile."""
    content = read_store_file(path)
    if is_java_store(content):
        return read_stored_certificates(path, content, password)
    _check_pem(path, content)
    return ascii_pem(content)


def _check_pem(path: str, content: bytes) -> None:
    """Raise BadTlsFile unless a file is PEM: OpenSSL names neither the file nor its format."""
    if _PEM_MARK not in content:
        raise BadTlsFile(path, "is no PEM file: it has no line of -----BEGIN …")


def _load_own_certificate(context: ssl.SSLContext, tls: TlsSettings) -> None:
    """Load the client's certificate and key from PEM text, a Java store or PEM files."""
    if tls.key_pem is not None:
        pem = f"{tls.key_pem}\n{tls.chain_pem or ''}\n".encode()
        load_key(context, PrivateKey("ssl.keystore.key", pem, tls.key_password))
        return
    assert tls.certificate_path is not None
    content = read_store_file(tls.certificate_path)
    if is_java_store(content):
        stored = read_stored_key(
            tls.certificate_path, content, tls.store_password, tls.key_password
        )
        load_key(context, stored)
    else:
        _load_pem_files(context, tls, content)


def _load_pem_files(context: ssl.SSLContext, tls: TlsSettings, certificate: bytes) -> None:
    """Load certificate and key from PEM files; raises BadTlsFile with the reason."""
    import ssl

    assert tls.certificate_path is not None
    _check_pem(tls.certificate_path, certificate)
    key_path = tls.key_path or tls.certificate_path
    _check_pem(key_path, read_store_file(key_path))
    try:
        # Without a password OpenSSL would ask for it on the terminal.
        context.load_cert_chain(tls.certificate_path, tls.key_path, tls.key_password or "")
    except (ssl.SSLError, ValueError) as error:
        # ValueError: the password is longer than OpenSSL accepts.
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            reason = f"is not the key of the certificate in {tls.certificate_path}"
            raise BadTlsFile(key_path, reason) from error
        raise BadTlsFile(key_path, _explain_key_failure(key_path, tls.key_password)) from error


def _explain_key_failure(path: str, password: str | None) -> str:
    """Return why the key file could not be loaded, for the error message."""
    content = read_store_file(path)
    if b"PRIVATE KEY-----" not in content:
        return "has no private key; ssl.key.location names its file"
    if b"ENCRYPTED" in content:
        return "ssl.key.password does not open it" if password else "needs ssl.key.password"
    return "holds no private key or certificate that can be read"


def explain_tls_failure(error: OSError, tls: TlsSettings | None, *, is_handshake: bool) -> Failure:
    """Return the cause of a connection's error for the user, and its remedy if known.

    `is_handshake`: the error came before the connection was established.
    """
    code = getattr(error, "verify_code", None)
    if code:
        return _explain_certificate_failure(code, str(getattr(error, "verify_message", "")))
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
        return _explain_refusal(reason, has_certificate=bool(tls and tls.has_certificate))
    text = error.strerror or str(error)
    return Failure(f"TLS: {text}" if is_handshake else text)


def _explain_certificate_failure(code: int, message: str) -> Failure:
    """Return the fault of the broker's certificate and its remedy, by OpenSSL's error code."""
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


def _explain_refusal(reason: str, *, has_certificate: bool) -> Failure:
    """Explain a handshake that the broker ended for our certificate, or for the lack of one."""
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
