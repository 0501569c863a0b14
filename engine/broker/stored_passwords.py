"""Passwords among the settings of one broker in its znode.

| setting | |
|---|---|
| `password.encoder.secret` | encrypts them; without it none are taken or read |
| `password.encoder.old.secret` | decrypts passwords of a former secret, which are written again |
| `password.encoder.cipher.algorithm`, `.keyfactory.algorithm`, `.key.length`, `.iterations` | how |

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
    """Return the encoder of passwords, None without a secret; raises ConfigError."""
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
    """Encrypt the passwords of an old secret again, with the new one; all others stay.

    Settings that another writer changes meanwhile are read again.
    """
    path = broker_config_path(broker_id)
    while True:
        try:
            data, stat = await znodes.get(path)
            stored = decode_config(data, path)
        except (NoNode, InvalidZnodeValue):
            return
        changed = _re_encoded(stored, old, new)
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


def _re_encoded(
    stored: dict[str, str], old: PasswordEncoder, new: PasswordEncoder
) -> dict[str, str]:
    """Return settings with passwords of the new secret; as they are if one cannot be encrypted."""
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
