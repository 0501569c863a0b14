"""Options of `kctl produce`, and their conversion to producer options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from engine.client.batch_sender import IN_FLIGHT_MAX
from engine.client.produce_calls import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from engine.client.producing import ProducerOptions
from engine.client.transactional_producer import TRANSACTION_TIMEOUT_MS
from engine.limits import PRODUCE_BATCH_BYTES, PRODUCE_LINGER_MS
from engine.records.codec import Codec
from kctl.arguments import UnreadableArgument
from kctl.numbers import INT32_MAX, parse_whole_number

_Value = TypeVar("_Value")

_ACKS = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": ACKS_LEADER, "0": ACKS_NONE}
_CODECS = {codec.name.lower(): codec for codec in Codec}
_TRUTHS = {"true": True, "false": False}

#: Settings of a producer, in addition to those of every client.
PRODUCER_KEYS = (
    "acks",
    "batch.size",
    "compression.type",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "transaction.timeout.ms",
    "transactional.id",
)


class ProduceRequest(NamedTuple):
    """The options of `kctl produce`; None if an option is not given."""

    topic: str
    key_delimiter: str | None = None
    key: str | None = None
    headers: tuple[str, ...] = ()
    null: str | None = None
    partition: int | None = None
    compression: str | None = None
    acks: str | None = None
    input: str = "lines"
    value_json: bool = False
    files: tuple[str, ...] = ()
    from_line: int = 1
    keep_partitions: bool = False
    new_timestamps: bool = False
    batch_bytes: int | None = None
    linger_ms: int | None = None
    no_idempotence: bool = False
    output: str | None = None
    transactional_id: str | None = None
    per_transaction: int | None = None
    abort_every: int | None = None
    transaction_timeout_ms: int | None = None
    settings: Mapping[str, str] = {}


def producer_options(request: ProduceRequest) -> ProducerOptions:
    """Return the producer's options; options of the command override -X settings.

    Kafka's defaults apply to what neither gives. Errors: UnreadableArgument, also for an idempotent
    producer without acks=all.
    """
    settings = request.settings
    acks = _choice("--acks", request.acks or settings.get("acks", "all"), _ACKS)
    codec = request.compression or settings.get("compression.type", "none")
    is_idempotent = _wants_idempotence(request)
    if is_idempotent and acks != ACKS_ALL:
        raise UnreadableArgument("acks of an idempotent producer", str(acks), "all")
    return ProducerOptions(
        acks=acks,
        codec=_choice("--compression", codec, _CODECS),
        batch_bytes=_option_or_setting(
            request.batch_bytes, settings, "batch.size", PRODUCE_BATCH_BYTES
        ),
        linger_ms=_option_or_setting(request.linger_ms, settings, "linger.ms", PRODUCE_LINGER_MS),
        is_idempotent=is_idempotent,
        in_flight_max=_parse_in_flight_max(settings),
    )


def transaction_timeout_ms(request: ProduceRequest) -> int:
    """Return transaction.timeout.ms: of the option, else of -X, else Kafka's default.

    The coordinator aborts an open transaction after this time. Errors: UnreadableArgument.
    """
    return _option_or_setting(
        request.transaction_timeout_ms,
        request.settings,
        "transaction.timeout.ms",
        TRANSACTION_TIMEOUT_MS,
    )


def _wants_idempotence(request: ProduceRequest) -> bool | None:
    """Return whether the producer is idempotent; None if no option and no setting decides.

    Then it is idempotent if the cluster allows it.
    """
    if request.no_idempotence:
        return False
    text = request.settings.get("enable.idempotence")
    return None if text is None else _choice("enable.idempotence", text, _TRUTHS)


def _parse_in_flight_max(settings: Mapping[str, str]) -> int:
    """Return max.in.flight.requests.per.connection; raises UnreadableArgument unless 1 to 5."""
    key = "max.in.flight.requests.per.connection"
    count = _option_or_setting(None, settings, key, IN_FLIGHT_MAX)
    if not 1 <= count <= IN_FLIGHT_MAX:
        raise UnreadableArgument(f"a value of {key}", str(count), f"1 to {IN_FLIGHT_MAX}")
    return count


def _option_or_setting(
    given: int | None, settings: Mapping[str, str], key: str, default: int
) -> int:
    """Return `given`, else the setting `key`, else the default; raises UnreadableArgument."""
    if given is not None:
        return given
    text = settings.get(key)
    if text is None:
        return default
    return parse_whole_number(text, f"a value of {key}", highest=INT32_MAX)


def _choice(option: str, text: str, choices: Mapping[str, _Value]) -> _Value:
    """Return the value of the choice named `text`; raises UnreadableArgument for another name."""
    if text not in choices:
        raise UnreadableArgument(f"a value of {option}", text, ", ".join(choices))
    return choices[text]
