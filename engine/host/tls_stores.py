"""Keys and certificates for TLS: PEM, and Java's stores, from files or settings.

| kind | read by |
|---|---|
| PEM | OpenSSL |
| PKCS12 | `cryptography`, an extra |
| JKS | `jks.py` |

The first bytes of a file determine its kind: Java, too, accepts PKCS12 where JKS is set. A key that
is not in a PEM file is passed to OpenSSL through a file in memory, or one that is removed at once.

Source: DefaultSslEngineFactory of 3.9.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import StorageError

if TYPE_CHECKING:
    import ssl

    from engine.host.jks import JksStore

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_USAGE_EXIT = 2
_DER_SEQUENCE = b"\x30"
_PEM_MARK = b"-----BEGIN "
_PEM_LINE_CHARS = 64
_NO_PKCS12 = "reading PKCS12 needs the package cryptography"


class BadTlsFile(StorageError):
    """A file needed for TLS cannot be used."""

    exit_code = _USAGE_EXIT
    hint = "correct the file, or the setting that names it"

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        if hint is not None:
            self.hint = hint


class PrivateKey(NamedTuple):
    """A private key with its chain as PEM, its own certificate first; `repr` does not show it."""

    #: The name of the file or the setting, for messages.
    name: str
    pem: bytes
    password: str | None = None

    def __repr__(self) -> str:
        return f"PrivateKey({self.name})"


class StoreFileState(NamedTuple):
    """A file's state; a changed one shows that the file was replaced or rewritten."""

    modified_ns: int
    size_bytes: int
    inode: int
    device: int


def is_unreadable(error: BadTlsFile) -> bool:
    """Return True if the system refused to read the file: a retry may succeed without a change."""
    import ssl

    cause = error.__cause__
    return isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError)


def read_file_state(path: str) -> StoreFileState | None:
    """Return the state of the file that a path leads to, None if it does not exist.

    Compared with an earlier state it shows whether the file was replaced.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return StoreFileState(status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev)


def read_store_file(path: str) -> bytes:
    """Return the content of a key or trust store; raises BadTlsFile."""
    if os.path.isdir(path):
        raise BadTlsFile(path, "is a directory")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise BadTlsFile(path, f"cannot be read: {error.strerror}") from error


def ascii_pem(content: bytes | str) -> str:
    """Return PEM in ASCII, as `ssl` requires: other characters, as in names, become `?`."""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    return text.encode("ascii", "replace").decode("ascii")


def is_java_store(content: bytes) -> bool:
    """Return True if bytes are a JKS or PKCS12 store, not PEM."""
    return _PEM_MARK not in content and content.startswith((_JKS_MAGIC, _DER_SEQUENCE))


def read_stored_key(
    path: str, content: bytes, password: str | None, key_password: str | None = None
) -> PrivateKey:
    """Return the first key of a JKS or PKCS12 store; raises BadTlsFile."""
    store = _read_java_store(path, content, password, key_password)
    if store.key is None:
        raise BadTlsFile(path, "has no private key")
    key = _encode_pem("PRIVATE KEY", [store.key])
    return PrivateKey(path, key + _encode_pem("CERTIFICATE", store.chain))


def read_stored_certificates(path: str, content: bytes, password: str | None) -> bytes:
    """Return the trusted certificates of a JKS or PKCS12 store, DER; raises BadTlsFile."""
    trusted = _read_java_store(path, content, password, None).trusted
    if not trusted:
        raise BadTlsFile(path, "has no trusted certificate")
    return b"".join(trusted)


def load_key(context: ssl.SSLContext, key: PrivateKey) -> None:
    """Load a private key and its certificate chain into a TLS context; raises BadTlsFile."""
    import ssl

    if b"PRIVATE KEY-----" not in key.pem:
        raise BadTlsFile(key.name, "has no private key")
    try:
        _load_chain(context, key)
    except (ssl.SSLError, ValueError) as error:
        # ValueError: the password is longer than OpenSSL accepts.
        raise BadTlsFile(key.name, _explain_failure(key, error)) from error
    except OSError as error:
        raise BadTlsFile(key.name, f"cannot be handed to OpenSSL: {error.strerror}") from error


def _explain_failure(key: PrivateKey, error: Exception) -> str:
    """Return the message for a key that OpenSSL refused to load, which names no cause itself."""
    if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
        return "its key is not that of its first certificate"
    if b"ENCRYPTED" in key.pem:
        return "ssl.key.password does not open it" if key.password else "needs ssl.key.password"
    return "holds no private key or certificate that can be read"


def _load_chain(context: ssl.SSLContext, key: PrivateKey) -> None:
    """Load a key and its chain through a temporary file: OpenSSL takes them from files only."""
    # Without a password OpenSSL would ask for it on the terminal.
    password = key.password or ""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, key.pem)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=password)
        finally:
            os.close(descriptor)
        return
    import tempfile

    # Its mode gives other users no access.
    with tempfile.NamedTemporaryFile() as file:
        file.write(key.pem)
        file.flush()
        context.load_cert_chain(file.name, password=password)


def _read_java_store(
    path: str, content: bytes, password: str | None, key_password: str | None
) -> JksStore:
    """Read a JKS or PKCS12 store; raises BadTlsFile if it cannot be opened."""
    if content.startswith(_JKS_MAGIC):
        from engine.host.jks import MalformedJks, read_jks

        try:
            return read_jks(content, password, key_password)
        except MalformedJks as error:
            raise BadTlsFile(path, f"cannot be read as JKS: {error}") from error
    if key_password is not None and key_password != password:
        # A PKCS12 store has one password for itself and its key, as Java writes it.
        raise BadTlsFile(path, "ssl.key.password does not open its key")
    return _read_pkcs12(path, content, password)


def _read_pkcs12(path: str, content: bytes, password: str | None) -> JksStore:
    """Read a PKCS12 store with the package `cryptography`; raises BadTlsFile, also without it."""
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError as error:
        hint = "pip install 'kctl-kafka[tls]', or convert it: `openssl pkcs12 -in STORE -nodes`"
        raise BadTlsFile(path, _NO_PKCS12, hint) from error
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        reason = "cannot be read as PKCS12: it is damaged, or the password is wrong"
        raise BadTlsFile(path, reason) from error
    from engine.host.jks import JksStore

    others = [one.certificate.public_bytes(Encoding.DER) for one in store.additional_certs]
    if store.key is None:
        return JksStore(None, [], others)
    key = store.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    own = [] if store.cert is None else [store.cert.certificate.public_bytes(Encoding.DER)]
    return JksStore(key, own + others, others)


def _encode_pem(kind: str, values: Iterable[bytes]) -> bytes:
    """Return DER values of one kind, for instance CERTIFICATE, as PEM."""
    from base64 import b64encode

    lines = []
    for value in values:
        text = b64encode(value).decode()
        rows = [text[at : at + _PEM_LINE_CHARS] for at in range(0, len(text), _PEM_LINE_CHARS)]
        lines += [f"-----BEGIN {kind}-----", *rows, f"-----END {kind}-----"]
    return "\n".join((*lines, "")).encode()
