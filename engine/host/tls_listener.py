"""TLS of a broker: contexts for its listeners and for its connections to other brokers.

| `ssl.client.auth` | client without a certificate | client with an untrusted certificate |
|---|---|---|
| none | accepted | accepted: no certificate is requested |
| requested | accepted | refused |
| required | refused | refused |

Every certificate of the trust store is a trust anchor, also one that is not self-signed, as in
Java. Renegotiation is off. Without a trust store the system's is used.

Source: DefaultSslEngineFactory, SslFactory of 3.9.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.host.stream_layer import LayerOf, LayerTo
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
    import socket
    import ssl

    from engine.host.tls_layer import TlsLayer

#: The supported versions of TLS.
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_CERTIFICATE_MARK: Final = b"-----BEGIN CERTIFICATE-----"
_CERTIFICATE_END: Final = b"-----END CERTIFICATE-----"
#: OpenSSL's verify modes by the value of `ssl.client.auth`.
_CLIENT_AUTH: Final = {"none": 0, "requested": 1, "required": 2}


class TlsListenerSettings(NamedTuple):
    """TLS settings of a listener; passwords and keys never show in a repr."""

    key_location: str | None
    key_store_password: str | None
    key_password: str | None
    #: PEM texts in place of a file.
    key_pem: str | None
    chain_pem: str | None
    trust_location: str | None
    trust_password: str | None
    trusted_pem: str | None
    client_auth: str = "none"
    versions: tuple[str, ...] = TLS_VERSIONS
    verifies_host: bool = True
    #: The ciphers of TLS 1.2 as an OpenSSL list; None: OpenSSL's default.
    ciphers: str | None = None

    def __repr__(self) -> str:
        return f"TlsListenerSettings({self.key_location}, {self.trust_location})"


def create_server_layer(settings: TlsListenerSettings) -> LayerOf:
    """Return the function that encrypts the connections that a listener accepts.

    Raises BadTlsFile.
    """
    import ssl

    from engine.host.tls_layer import TlsLayer

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _configure_context(context, settings)
    load_key(context, _read_key(settings))
    context.verify_mode = ssl.VerifyMode(_CLIENT_AUTH[settings.client_auth])
    return lambda sock: TlsLayer(context, sock)


def create_client_layer(settings: TlsListenerSettings) -> LayerTo:
    """Return the function that encrypts connections to other brokers; raises BadTlsFile."""
    import ssl

    from engine.host.tls_layer import TlsLayer

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _configure_context(context, settings)
    load_key(context, _read_key(settings))
    context.check_hostname = settings.verifies_host

    def layer_to(host: str) -> LayerOf:
        """Return the function that encrypts a socket to a host, and may verify its name."""

        def layer_of(sock: socket.socket) -> TlsLayer:
            """Return the TLS client's side of a socket to the host."""
            return TlsLayer(context, sock, host)

        return layer_of

    return layer_to


def read_first_certificate(settings: TlsListenerSettings) -> bytes:
    """Return the first certificate (DER) of the chain of a listener's key; raises BadTlsFile."""
    import ssl

    key = _read_key(settings)
    _, mark, rest = key.pem.partition(_CERTIFICATE_MARK)
    body, end, _ = rest.partition(_CERTIFICATE_END)
    if not mark or not end:
        raise BadTlsFile(key.name, "has no certificate")
    try:
        return ssl.PEM_cert_to_DER_cert((mark + body + end).decode("ascii").strip())
    except ValueError as error:
        raise BadTlsFile(key.name, "holds no certificate that can be read") from error


def _configure_context(context: ssl.SSLContext, settings: TlsListenerSettings) -> None:
    """Set protocol versions, options and trusted certificates; raises BadTlsFile."""
    import ssl

    versions = [ssl.TLSVersion[version.replace(".", "_")] for version in settings.versions]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if settings.ciphers is not None:
        context.set_ciphers(settings.ciphers)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    name = settings.trust_location or "ssl.truststore.certificates"
    if settings.trusted_pem is not None:
        trusted: str | bytes = ascii_pem(settings.trusted_pem)
    elif settings.trust_location is None:
        context.load_default_certs()
        return
    else:
        content = read_store_file(settings.trust_location)
        if is_java_store(content):
            trusted = read_stored_certificates(name, content, settings.trust_password)
        else:
            trusted = ascii_pem(content)
    try:
        context.load_verify_locations(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise BadTlsFile(name, "holds no certificate that can be read") from error


def _read_key(settings: TlsListenerSettings) -> PrivateKey:
    """Return the broker's key and chain from PEM text, a Java store or a PEM file."""
    if settings.key_pem is not None:
        pem = f"{settings.key_pem}\n{settings.chain_pem or ''}\n".encode()
        return PrivateKey("ssl.keystore.key", pem, settings.key_password)
    assert settings.key_location is not None
    content = read_store_file(settings.key_location)
    if is_java_store(content):
        return read_stored_key(
            settings.key_location, content, settings.key_store_password, settings.key_password
        )
    return PrivateKey(settings.key_location, content, settings.key_password)
