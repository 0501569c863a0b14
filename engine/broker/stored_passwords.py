"""Encrypted passwords in the dynamic settings of one broker in its znode.

| setting | meaning |
|---|---|
| `password.encoder.secret` | encrypts them; without it passwords are neither accepted nor read |
| `password.encoder.old.secret` | decrypts passwords of an old secret, to encrypt them again |
| `password.encoder.cipher.algorithm`, `.keyfactory.algorithm`, `.key.length`, … | method |

Source: DynamicBrokerConfig.maybeCreatePasswordEncoder, maybeReEncodePasswords of 3.9.1; KIP-226.
"""

from __future__ import annotations

import logging

from engine.admin.config_admin import change_note
from engine.config.broker_config import BrokerConfig
from engine.config.change import is_encrypted
from engine.errors import EngineError
from engine.host.ports import Entropy
from engine.security.password_encoder import (
    EncoderSettings,
    PasswordEncoder,
    PasswordUnreadable,
)
from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import SetData
from engine.znode.paths import BROKER_CONFIGS, broker_config_path
from engine.znode.values import decode_config, encode_config

_log = logging.getLogger("kafka.server.DynamicBrokerConfig")


def password_encoder(
    config: BrokerConfig, entropy: Entropy, *, is_old: bool = False
) -> PasswordEncoder | None:
    """Return the encoder of passwords in the store, with the present or (`is_old`) old secret.

    None if that secret is not configured. Raises ConfigError.
    """
    secret = config.password_encoder_old_secret if is_old else config.password_encoder_secret
    if secret is None:
        return None
    settings = EncoderSettings(
        secret,
        config.password_encoder_cipher_algorithm,
        config.password_encoder_keyfactory_algorithm,
        config.password_encoder_key_length,
        config.password_encoder_iterations,
    )
    settings.check()
    return PasswordEncoder(settings, entropy)


async def re_encode_passwords(
    znodes: ZnodeClient, broker_id: int, old: PasswordEncoder, new: PasswordEncoder
) -> None:
    """Encrypt this broker's stored passwords, which the old secret encrypts, with the new one.

    Repeats after a concurrent change of the znode.
    """
    path = broker_config_path(broker_id)
    while True:
        try:
            data, stat = await znodes.get(path)
            stored = decode_config(data, path)
        except (NoNode, InvalidZnodeValue):
            return
        changed = _encrypt_again(stored, old, new)
        if changed == stored:
            return
        write = SetData(path, encode_config(changed), stat.version)
        try:
            await znodes.multi((write, change_note(f"{BROKER_CONFIGS}/{broker_id}")))
        except (BadVersion, NoNode) as error:
            if error.operation_index != 0:
                raise
        else:
            return


def _encrypt_again(
    stored: dict[str, str], old: PasswordEncoder, new: PasswordEncoder
) -> dict[str, str]:
    """Return stored settings, the passwords of the old secret encrypted with the new one.

    All unchanged if one cannot be encrypted.
    """
    changed = dict(stored)
    for name, text in stored.items():
        if not is_encrypted(name):
            continue
        try:
            changed[name] = new.encode(old.decode(text))
        except PasswordUnreadable:
            _log.debug("%s is not encrypted by the old secret", name)
        except EngineError as error:
            _log.error("Passwords stay as they are encrypted: %s", error)
            return stored
    return changed
