"""Passwords of a broker in its znode: encrypted, gone by, and encrypted again for a new secret."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from engine.broker.stored_passwords import re_encode_passwords
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, SeededEntropy
from engine.security.password_encoder import EncoderSettings, PasswordEncoder
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import NoNode
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Operation, OperationResult
from engine.znode.store import ZnodeStore
from engine.znode.values import decode_config, encode_config
from tests.unit.broker.memory_broker import MemoryBroker

KEY = "listener.name.internal.ssl.keystore.password"
SET, DELETE = 0, 1


def alter(stage: MemoryBroker, *operations: tuple[int, str, str | None], name: str = "1") -> int:
    of = message_class("IncrementalAlterConfigsRequest")
    resource = of.AlterConfigsResource(
        resource_type=4,
        resource_name=name,
        configs=[
            of.AlterableConfig(config_operation=operation, name=key, value=value)
            for operation, key, value in operations
        ],
    )
    answer = stage.connect().ask("IncrementalAlterConfigs", 1, resources=[resource])
    stage.timers.run_until_idle()
    code: int = answer.responses[0].error_code
    return code


def stored(stage: MemoryBroker) -> dict[str, str]:
    client = EmbeddedZnodeClient(stage.store, 1 << 30)
    drive(client.connect()).result()
    return decode_config(drive(client.get("/config/brokers/1")).result()[0], "")


def shown(stage: MemoryBroker) -> list[Any]:
    of = message_class("DescribeConfigsRequest")
    resource = of.DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=[KEY]
    )
    answer = stage.connect().ask("DescribeConfigs", 4, resources=[resource])
    return list(answer.results[0].configs)


def broker(of: MemoryBroker | None = None, **settings: str) -> MemoryBroker:
    earlier: dict[str, Any] = {} if of is None else {"files": of.files, "store": of.store}
    fast = {"password_encoder_iterations": "1024"}
    return MemoryBroker(**{**earlier, **fast, **settings}).start()


def test_a_password_is_encrypted_and_gone_by() -> None:
    stage = broker(password_encoder_secret="one")
    assert 0 == alter(stage, (SET, KEY, "hush"))
    (text,) = stored(stage).values()
    assert "hush" not in text
    assert "hush" == stage.broker.live.settings.configured_text(KEY)
    (config,) = shown(stage)
    assert (KEY, None, True) == (config.name, config.value, config.is_sensitive)
    # Another change leaves its text, salt and all.
    assert 0 == alter(stage, (SET, "log.cleaner.threads", "2"))
    assert text == stored(stage)[KEY]
    assert 0 == alter(stage, (DELETE, KEY, None))
    assert {"log.cleaner.threads": "2"} == stored(stage)
    assert stage.broker.live.settings.configured_text(KEY) is None
    stage.stop()


def test_a_password_is_of_one_broker() -> None:
    stage = broker(password_encoder_secret="one")
    assert 40 == alter(stage, (SET, "my.ssl.key.password", "x"), name="")
    stage.stop()


def test_a_restart_reads_it_with_the_same_secret_and_with_no_other() -> None:
    stage = broker(password_encoder_secret="one")
    alter(stage, (SET, KEY, "hush"))
    stage.stop()
    before = stored(stage)
    for secret, expected in (("two", None), ("one", "hush")):
        again = broker(stage, password_encoder_secret=secret)
        assert expected == again.broker.live.settings.configured_text(KEY)
        assert before == stored(again)
        again.stop()


def test_the_old_secret_hands_passwords_on_to_the_new_one() -> None:
    stage = broker(password_encoder_secret="one")
    alter(stage, (SET, KEY, "hush"))
    stage.stop()
    before = stored(stage)
    both = broker(stage, password_encoder_secret="two", password_encoder_old_secret="one")
    assert "hush" == both.broker.live.settings.configured_text(KEY)
    assert before != stored(both)
    both.stop()
    new = broker(stage, password_encoder_secret="two")
    assert "hush" == new.broker.live.settings.configured_text(KEY)
    new.stop()


class Raced(EmbeddedZnodeClient):
    """Somebody else is faster once: `first` is what that one does."""

    first: Coroutine[Any, None, Any] | None = None

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        if self.first is not None:
            drive(self.first).result()
            self.first = None
        return await super().multi(operations)


def _encoder(secret: str) -> PasswordEncoder:
    settings = EncoderSettings(secret, "AES/CBC/PKCS5Padding", None, 128, 1_024)
    return PasswordEncoder(settings, SeededEntropy(1))


def _raced() -> Raced:
    client = Raced(ZnodeStore(MemoryJournal(), ManualClock()), 1 << 30)
    drive(client.connect()).result()
    for path in ("/config", "/config/changes", "/config/brokers"):
        drive(client.create(path)).result()
    data = encode_config({KEY: _encoder("one").encode("hush")})
    drive(client.create("/config/brokers/1", data)).result()
    return client


def test_a_change_in_between_keeps_no_password_at_the_old_secret() -> None:
    """Source: AdminZkClient.changeBrokerConfig, which has no version: a broker starts with both."""
    client, old, new = _raced(), _encoder("one"), _encoder("two")
    data = encode_config({KEY: old.encode("hush"), "log.cleaner.threads": "2"})
    client.first = client.set("/config/brokers/1", data)
    drive(re_encode_passwords(client, 1, old, new)).result()
    config = decode_config(drive(client.get("/config/brokers/1")).result()[0], "")
    assert ("2", "hush") == (config["log.cleaner.threads"], new.decode(config[KEY]))
    assert 1 == len(drive(client.children("/config/changes")).result())


def test_passwords_that_are_removed_in_between_are_gone() -> None:
    client = _raced()
    client.first = client.delete("/config/brokers/1")
    drive(re_encode_passwords(client, 1, _encoder("one"), _encoder("two"))).result()
    assert [] == drive(client.children("/config/brokers")).result()


def test_a_note_without_a_place_is_an_error() -> None:
    client = _raced()
    drive(client.delete("/config/changes")).result()
    with pytest.raises(NoNode):
        drive(re_encode_passwords(client, 1, _encoder("one"), _encoder("two"))).result()
