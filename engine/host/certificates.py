"""Keys and certificates for rehearsals: an authority, and its certificates for brokers and clients.

```
authority   CN=<name>          basic constraints: a CA; key usage: signs certificates
broker      CN=<name>          names and addresses of its hosts; TLS server and client
client      CN=<name>          TLS client
```

Keys are of P-256, PKCS8 without a password: Kafka reads a key and its chain from one PEM file. Key
identifiers are there for OpenSSL's strict checks, which Python makes from 3.13 on. Differs from the
other modules here: the package cryptography draws its own randomness.

Source: RFC 5280; KIP-651.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError

if TYPE_CHECKING:
    from types import ModuleType

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

#: Certificates are valid from this long ago on: clocks of other machines may be behind.
_CLOCK_SKEW = timedelta(hours=1)
_NAME_CHARACTERS_MAX = 64


class NoCertificates(EngineError):
    """The package that makes certificates is not installed."""

    hint = "pip install 'kctl-kafka[tls]'"

    def __init__(self) -> None:
        super().__init__("making certificates needs the package cryptography")


class BadAuthority(EngineError):
    """Files do not hold the key and the certificate of an authority."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no authority to issue certificates: {reason}")
        self.reason = reason


class BadCertificateName(EngineError):
    """A name cannot be the common name of a certificate."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is no common name: 1 to {_NAME_CHARACTERS_MAX} characters")
        self.name = name


class IssuedCertificate(NamedTuple):
    """A private key and its certificate, each as PEM; `repr` shows neither."""

    key_pem: bytes
    certificate_pem: bytes
    expires_ms: int

    def __repr__(self) -> str:
        return f"IssuedCertificate(expires_ms={self.expires_ms})"


class Validity(NamedTuple):
    """The validity of a certificate: from now on, so many days."""

    now_ms: int
    days: int

    @property
    def begin(self) -> datetime:
        """Return the first moment of the certificate's validity: an hour ago, for slow clocks."""
        return datetime.fromtimestamp(self.now_ms // 1000, UTC) - _CLOCK_SKEW

    @property
    def end(self) -> datetime:
        """Return the last moment at which the certificate is valid."""
        return datetime.fromtimestamp(self.now_ms // 1000, UTC) + timedelta(days=self.days)


def check_common_name(name: str) -> None:
    """Raise BadCertificateName if a name cannot be the common name of a certificate."""
    if not 0 < len(name) <= _NAME_CHARACTERS_MAX:
        raise BadCertificateName(name)


def create_authority(name: str, validity: Validity) -> IssuedCertificate:
    """Return a new certificate authority of this name, with its private key.

    Raises NoCertificates, BadCertificateName.
    """
    x509, ec = _import_packages()
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _common_name(name)
    usage = _key_usage(signs_certificates=True)
    builder = _create_builder(subject, subject, key, validity.begin, validity.end)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    return _sign(builder, key, key, validity.end)


def read_authority(
    key_pem: bytes, certificate_pem: bytes, now_ms: int
) -> tuple[str, IssuedCertificate]:
    """Return the subject of an existing authority, and the authority.

    Errors: NoCertificates; BadAuthority, also for an expired one.
    """
    _import_packages()
    authority = IssuedCertificate(key_pem, certificate_pem, 0)
    certificate, _ = _load_authority(authority, now_ms)
    expires_ms = _ms(certificate.not_valid_after_utc)
    return certificate.subject.rfc4514_string(), authority._replace(expires_ms=expires_ms)


def issue_certificate(
    authority: IssuedCertificate,
    name: str,
    hosts: Sequence[str],
    validity: Validity,
    *,
    is_broker: bool,
) -> IssuedCertificate:
    """Return a certificate of an authority for a broker at some hosts, or for a client.

    It ends with the authority at the latest.
    Errors: NoCertificates, BadAuthority, BadCertificateName.
    """
    x509, ec = _import_packages()
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer, issuer_key = _load_authority(authority, validity.now_ms)
    end = min(validity.end, issuer.not_valid_after_utc)
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if is_broker:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    builder = _create_builder(_common_name(name), issuer.subject, key, validity.begin, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    if hosts:
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return _sign(builder, key, issuer_key, end)


def _import_packages() -> tuple[ModuleType, ModuleType]:
    """Return the modules of `cryptography`; raises NoCertificates if it is not installed."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise NoCertificates from error
    return x509, ec


def _load_authority(
    authority: IssuedCertificate, now_ms: int
) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    """Return certificate and key of an authority; raises BadAuthority."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(authority.key_pem, None)
    except (ValueError, TypeError) as error:
        raise BadAuthority("its key cannot be read") from error
    try:
        certificate = x509.load_pem_x509_certificate(authority.certificate_pem)
    except ValueError as error:
        raise BadAuthority("its certificate cannot be read") from error
    if not isinstance(key, EllipticCurvePrivateKey):
        raise BadAuthority("its key is not of an elliptic curve")
    if certificate.public_key() != key.public_key():
        raise BadAuthority("its key and its certificate do not belong together")
    if _ms(certificate.not_valid_after_utc) < now_ms:
        raise BadAuthority(f"it has expired on {certificate.not_valid_after_utc:%Y-%m-%d}")
    return certificate, key


def _ms(moment: datetime) -> int:
    """Return a moment in ms since the Unix epoch."""
    return round(moment.timestamp() * 1000)


def _create_builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    begin: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    """Return a certificate's builder with names, key, serial number and validity."""
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _sign(
    builder: x509.CertificateBuilder,
    key: EllipticCurvePrivateKey,
    issuer_key: EllipticCurvePrivateKey,
    end: datetime,
) -> IssuedCertificate:
    """Sign the certificate of `builder` with the issuer's key; return it in PEM with its own key.

    `end` is its expiry.
    """
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    certificate = builder.sign(issuer_key, hashes.SHA256())
    return IssuedCertificate(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        certificate.public_bytes(Encoding.PEM),
        _ms(end),
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Return the key usage extension: of an authority (it signs) or of an end entity."""
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(name: str) -> x509.Name:
    """Return an X.509 name with only a common name; raises if the name is not allowed."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    check_common_name(name)
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    """Return a host as an alternative name of a certificate: IP address or DNS name."""
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
