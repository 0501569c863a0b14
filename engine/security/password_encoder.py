"""Encryption and decryption of passwords in the znode of a broker's settings.

```
initializationVector:<base64>,keyLength:128,salt:<base64 of 256 bytes>,
keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,
passwordLength:6,encryptedPassword:<base64>
```

In one line. The key is PBKDF2 of `password.encoder.secret` and the salt; a text contains the names
of its algorithms, so that they may change. If a decrypted password has another length, the text was
encrypted with another secret.

Source: org.apache.kafka.security.EncryptingPasswordEncoder, CbcParamsEncoder of 3.9.1; texts that a
real broker wrote.
Differs: the only cipher is AES/CBC/PKCS5Padding, the only key factories are those of PBKDF2.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final, NamedTuple

from engine.errors import ConfigError, EngineError
from engine.host.ports import Entropy

_CIPHER: Final = "AES/CBC/PKCS5Padding"
_DEFAULT_FACTORY: Final = "PBKDF2WithHmacSHA512"
_HASHES: Final = {
    "PBKDF2WithHmacSHA1": "sha1",
    "PBKDF2WithHmacSHA224": "sha224",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA384": "sha384",
    _DEFAULT_FACTORY: "sha512",
}
_KEY_BITS: Final = (128, 192, 256)
_SALT_BYTES: Final = 256
_BLOCK_BYTES: Final = 16
#: A text in a znode must not keep a broker busy forever.
_ITERATIONS_MAX: Final = 10_000_000


class PasswordUnreadable(EngineError):
    """A text is not an encrypted password, or was encrypted with another secret."""


class NoCipher(EngineError):
    """The package for encryption is not installed."""

    hint = "pip install 'kctl-kafka[tls]'"

    def __init__(self) -> None:
        super().__init__("to keep passwords needs the package cryptography")


class EncoderSettings(NamedTuple):
    """The settings `password.encoder.*`; the secret is not in the repr."""

    secret: str
    cipher: str = _CIPHER
    key_factory: str | None = None
    key_bits: int = 128
    iterations: int = 4096

    def __repr__(self) -> str:
        return f"EncoderSettings({self.cipher}, {self.key_bits}, {self.iterations})"

    def check(self) -> None:
        """Raise ConfigError if the cipher, key factory or key length is not supported."""
        if self.cipher != _CIPHER:
            raise ConfigError(
                "password.encoder.cipher.algorithm", self.cipher, f"must be {_CIPHER}"
            )
        if self.key_factory is not None and self.key_factory not in _HASHES:
            rule = f"must be of {', '.join(_HASHES)}"
            raise ConfigError("password.encoder.keyfactory.algorithm", self.key_factory, rule)
        if self.key_bits not in _KEY_BITS:
            rule = f"must be of {', '.join(map(str, _KEY_BITS))}"
            raise ConfigError("password.encoder.key.length", self.key_bits, rule)


class PasswordEncoder:
    """Encrypts and decrypts passwords with one secret."""

    def __init__(self, settings: EncoderSettings, entropy: Entropy) -> None:
        self._settings = settings
        self._entropy = entropy

    def encode(self, password: str) -> str:
        """Return a password encrypted, as it is stored in a znode; raises NoCipher."""
        settings = self._settings
        raw = password.encode()
        salt = self._entropy.random_bytes(_SALT_BYTES)
        vector = self._entropy.random_bytes(_BLOCK_BYTES)
        factory = settings.key_factory or _DEFAULT_FACTORY
        key = _derive_key(settings.secret, salt, factory, settings.key_bits, settings.iterations)
        fields = {
            "initializationVector": _base64(vector),
            "keyLength": str(settings.key_bits),
            "salt": _base64(salt),
            "keyFactoryAlgorithm": factory,
            "cipherAlgorithm": settings.cipher,
            "iterations": str(settings.iterations),
            "passwordLength": str(_java_length(password)),
            "encryptedPassword": _base64(_encrypt(key, vector, raw)),
        }
        return ",".join(f"{name}:{text}" for name, text in fields.items())

    def decode(self, text: str) -> str:
        """Return the password of a text that `encode` or Kafka wrote.

        Raises PasswordUnreadable, also if it was encrypted with another secret, and NoCipher.
        """
        fields = {name: value for name, _, value in (p.partition(":") for p in text.split(","))}
        try:
            factory, cipher = fields["keyFactoryAlgorithm"], fields["cipherAlgorithm"]
            key_bits, iterations = int(fields["keyLength"]), int(fields["iterations"])
            length = int(fields["passwordLength"])
            salt, vector, encrypted = (
                b64decode(fields[name], validate=True)
                for name in ("salt", "initializationVector", "encryptedPassword")
            )
        except (KeyError, ValueError, Base64Error) as error:
            raise PasswordUnreadable("it is no encrypted password") from error
        is_known = cipher == _CIPHER and factory in _HASHES and key_bits in _KEY_BITS
        is_whole = len(vector) == _BLOCK_BYTES and encrypted and not len(encrypted) % _BLOCK_BYTES
        if not is_known or not is_whole or not 1 <= iterations <= _ITERATIONS_MAX:
            raise PasswordUnreadable(f"it was made by {cipher} and {factory}, or is damaged")
        key = _derive_key(self._settings.secret, salt, factory, key_bits, iterations)
        try:
            password = _decrypt(key, vector, encrypted).decode()
        except ValueError as error:
            raise PasswordUnreadable("it was made with another secret") from error
        if _java_length(password) != length:
            raise PasswordUnreadable("it was made with another secret")
        return password


def _java_length(text: str) -> int:
    """Return a text's length in Java, where a character above U+FFFF counts as two."""
    return len(text) + sum(character > "\uffff" for character in text)


def _derive_key(secret: str, salt: bytes, factory: str, key_bits: int, iterations: int) -> bytes:
    """Return a cipher key of `key_bits`, derived from the secret by PBKDF2."""
    return hashlib.pbkdf2_hmac(_HASHES[factory], secret.encode(), salt, iterations, key_bits // 8)


def _encrypt(key: bytes, vector: bytes, raw: bytes) -> bytes:
    """Return the AES-CBC ciphertext with PKCS#7 padding; raises NoCipher without the library."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError as error:
        raise NoCipher from error
    padding = _BLOCK_BYTES - len(raw) % _BLOCK_BYTES
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    return encryptor.update(raw + bytes([padding]) * padding) + encryptor.finalize()


def _decrypt(key: bytes, vector: bytes, encrypted: bytes) -> bytes:
    """Return the plain bytes of an AES-CBC ciphertext.

    Raises ValueError for an invalid padding, NoCipher without the library.
    """
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError as error:
        raise NoCipher from error
    decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    padded = decryptor.update(encrypted) + decryptor.finalize()
    padding = padded[-1]
    if not 1 <= padding <= _BLOCK_BYTES or not padded.endswith(bytes([padding]) * padding):
        raise ValueError("no padding")
    return padded[:-padding]


def _base64(raw: bytes) -> str:
    """Return the base64 text of bytes."""
    return b64encode(raw).decode()
