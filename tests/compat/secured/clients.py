"""Clients that connect, and what each says of it: `ok`, or the error that a program sees."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.compat.secured.brokers import SecuredBroker
from tests.compat.secured.cells import OAUTHBEARER, SCRAM, Cell

_PROGRAM: Final = Path(__file__).with_name("Connect.java")
_TIMEOUT_S: Final = 6.0
_MODULES: Final = "org.apache.kafka.common.security"
#: How often a client of librdkafka is looked at for errors.
_LOOK_S: Final = 0.5
_THREADS: Final = 4
#: Arity cells, the broker and the folder of certificates; returns an outcome for each cell.
Outcomes = Callable[[Sequence[Cell], SecuredBroker, Path], list[str]]


def java_of(libs: str) -> Outcomes:
    """Return the admin client of a release whose jars are in `libs`."""

    def outcomes(cells: Sequence[Cell], broker: SecuredBroker, certificates: Path) -> list[str]:
        lines = [
            json.dumps(
                {
                    "settings": _java_settings(cell, broker, certificates),
                    "duration_ms": cell.duration_ms,
                }
            )
            for cell in cells
        ]
        done = subprocess.run(
            ["java", "-cp", f"{libs}/*", str(_PROGRAM)],
            input="\n".join(lines),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        return [plain(json.loads(line)) for line in done.stdout.splitlines()]

    return outcomes


def _java_settings(cell: Cell, broker: SecuredBroker, certificates: Path) -> dict[str, str]:
    settings = {
        "bootstrap.servers": broker.address(cell.listener),
        "security.protocol": cell.protocol,
        "default.api.timeout.ms": "10000",
        "request.timeout.ms": "9000",
        "retries": "0",
    }
    if cell.mechanism is not None:
        settings["sasl.mechanism"] = cell.mechanism
        settings["sasl.jaas.config"] = _jaas(cell)
    if cell.protocol.endswith("SSL"):
        settings["ssl.truststore.type"] = settings["ssl.keystore.type"] = "PEM"
        settings["ssl.truststore.location"] = str(certificates / cell.authority)
        if cell.certificate is not None:
            settings["ssl.keystore.location"] = str(certificates / cell.certificate)
    return settings


def _jaas(cell: Cell) -> str:
    if cell.mechanism == OAUTHBEARER:
        module = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule"
        counts = f'unsecuredLoginLifetimeSeconds="{cell.token_s}"'
        return f'{module} required unsecuredLoginStringClaim_sub="{cell.user}" {counts};'
    kind = "scram.ScramLoginModule" if cell.mechanism in SCRAM else "plain.PlainLoginModule"
    return f'{_MODULES}.{kind} required username="{cell.user}" password="{cell.password}";'


def librdkafka(cells: Sequence[Cell], broker: SecuredBroker, certificates: Path) -> list[str]:
    """Return the first error of an admin client of librdkafka for each cell."""
    return _at_once(lambda cell: _librdkafka(cell, broker, certificates), cells)


def _librdkafka(cell: Cell, broker: SecuredBroker, certificates: Path) -> str:
    from confluent_kafka.admin import AdminClient

    errors: list[Any] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": broker.address(cell.listener),
        "security.protocol": cell.protocol.lower(),
        "error_cb": errors.append,
        "log_level": 0,
    }
    if cell.mechanism == OAUTHBEARER:

        def token(_config: str) -> tuple[str, float]:
            # The library would not send one that it knows to have expired.
            counts_s = cell.token_s if cell.token_s > 0 else 3600
            return unsecured_token(cell.user, cell.token_s), time.time() + counts_s

        settings |= {"sasl.mechanism": cell.mechanism, "oauth_cb": token}
    elif cell.mechanism is not None:
        settings |= {
            "sasl.mechanism": cell.mechanism,
            "sasl.username": cell.user,
            "sasl.password": cell.password,
        }
    if cell.protocol.endswith("SSL"):
        settings["ssl.ca.location"] = str(certificates / cell.authority)
        if cell.certificate is not None:
            path = str(certificates / cell.certificate)
            settings |= {"ssl.certificate.location": path, "ssl.key.location": path}
    client = AdminClient(settings)
    began_s, until_s = time.monotonic(), None
    while True:
        try:
            client.list_topics(timeout=_LOOK_S)
        except Exception as failure:
            client.poll(0)
            if errors or time.monotonic() > began_s + _TIMEOUT_S:
                first = errors[0] if errors else failure.args[0]
                return plain(f"{first.name()}: {first.str()}")
            continue
        until_s = until_s or time.monotonic() + cell.duration_ms / 1000
        if time.monotonic() >= until_s:
            return "ok"
        time.sleep(0.2)


def kafka_python(cells: Sequence[Cell], broker: SecuredBroker, certificates: Path) -> list[str]:
    """Return how an admin client of kafka-python fares in each cell."""
    return _at_once(lambda cell: _kafka_python(cell, broker, certificates), cells)


def _kafka_python(cell: Cell, broker: SecuredBroker, certificates: Path) -> str:
    from kafka import KafkaAdminClient
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return unsecured_token(cell.user, cell.token_s)

    settings = _python_settings(cell) | {
        "bootstrap_servers": broker.address(cell.listener),
        "bootstrap_timeout_ms": int(_TIMEOUT_S * 1000),
        "request_timeout_ms": int(_TIMEOUT_S * 1000),
    }
    if cell.mechanism == OAUTHBEARER:
        settings["sasl_oauth_token_provider"] = Provider()
    if cell.protocol.endswith("SSL"):
        settings["ssl_context"] = _context(cell, certificates)
    try:
        client = KafkaAdminClient(**settings)
        until_s = time.monotonic() + cell.duration_ms / 1000
        try:
            while True:
                client.describe_cluster()
                if time.monotonic() >= until_s:
                    return "ok"
                time.sleep(0.2)
        finally:
            client.close()
    except Exception as failure:
        return plain(f"{type(failure).__name__}: {failure}")


def aiokafka(cells: Sequence[Cell], broker: SecuredBroker, certificates: Path) -> list[str]:
    """Return how an admin client of aiokafka fares in each cell."""

    async def work() -> list[str]:
        return list(
            await asyncio.gather(*(_aiokafka(cell, broker, certificates) for cell in cells))
        )

    return asyncio.run(work())


async def _aiokafka(cell: Cell, broker: SecuredBroker, certificates: Path) -> str:
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.admin import AIOKafkaAdminClient

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return unsecured_token(cell.user, cell.token_s)

    settings = _python_settings(cell) | {
        "bootstrap_servers": broker.address(cell.listener),
        "request_timeout_ms": int(_TIMEOUT_S * 1000),
    }
    if cell.mechanism == OAUTHBEARER:
        settings["sasl_oauth_token_provider"] = Provider()
    if cell.protocol.endswith("SSL"):
        settings["ssl_context"] = _context(cell, certificates)
    client = AIOKafkaAdminClient(**settings)
    try:
        await asyncio.wait_for(client.start(), 2 * _TIMEOUT_S)
        until_s = time.monotonic() + cell.duration_ms / 1000
        while True:
            await client.describe_cluster()
            if time.monotonic() >= until_s:
                return "ok"
            await asyncio.sleep(0.2)
    except Exception as failure:
        return plain(f"{type(failure).__name__}: {failure}")
    finally:
        await client.close()


def _python_settings(cell: Cell) -> dict[str, Any]:
    settings: dict[str, Any] = {"security_protocol": cell.protocol}
    if cell.mechanism is not None:
        settings["sasl_mechanism"] = cell.mechanism
        if cell.mechanism != OAUTHBEARER:
            settings |= {"sasl_plain_username": cell.user, "sasl_plain_password": cell.password}
    return settings


def _context(cell: Cell, certificates: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates / cell.authority))
    if cell.certificate is not None:
        context.load_cert_chain(str(certificates / cell.certificate))
    return context


def unsecured_token(user: str, counts_s: int) -> str:
    """Return an access token that nobody has signed, and that counts so long from now on."""
    now_s = int(time.time())
    issued_s = min(now_s, now_s + counts_s - 1)
    parts = ({"alg": "none"}, {"sub": user, "iat": issued_s, "exp": now_s + counts_s})
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join((*texts, b"")).decode()


def plain(text: str) -> str:
    """Return an outcome without what two brokers or two moments have of their own."""
    text = re.sub(r"(localhost|127\.0\.0\.1|::1)\S*", "<broker>", text)
    text = re.sub(r"\d+", "#", text)
    return re.sub(r"0x[0-9a-f#]+", "<address>", text).splitlines()[0][:200]


def _at_once(outcome: Callable[[Cell], str], cells: Sequence[Cell]) -> list[str]:
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(outcome, cells))
