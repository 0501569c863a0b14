"""The options that change the output of a dump."""

from __future__ import annotations

from typing import NamedTuple

from engine.dump.decoders import Decoder, TextDecoder
from engine.dump.filters import Filters
from engine.errors import EngineError

INT_MAX = 2_147_483_647

#: Versions whose exact lines can be printed, by their accepted spellings.
KAFKA_VERSIONS = {"3.9": "3.9.1", "3.9.1": "3.9.1", "4.3": "4.3.0", "4.3.0": "4.3.0"}


class UnknownKafkaVersion(EngineError):
    """The lines of an unknown Kafka version were requested."""

    def __init__(self, version: str) -> None:
        super().__init__(f"--kafka-version {version}: expected one of {', '.join(KAFKA_VERSIONS)}")
        self.version = version


class DumpOptions(NamedTuple):
    """The options that change the output of a dump.

    `max_bytes` is the length of the part of each log that is read, `max_message_size_bytes` that of
    the part read to check an index entry. `deep` prints records below their batch, `print_data`
    adds key and value, `skip_record_metadata` prints only those. `log_fault` and `index_fault` are
    invalid options that Kafka's tool only reports when it reaches a log or an offset index.
    """

    kafka_version: str = "3.9.1"
    deep: bool = False
    print_data: bool = False
    skip_record_metadata: bool = False
    max_bytes: int = INT_MAX
    max_message_size_bytes: int = 5 * 1024 * 1024
    verify_index_only: bool = False
    index_sanity_check: bool = False
    decoder: Decoder = TextDecoder()
    filters: Filters = Filters()
    log_fault: EngineError | None = None
    index_fault: EngineError | None = None

    @property
    def is_four(self) -> bool:
        """Return True if the lines of 4.3.0 are requested, False for 3.9.1."""
        return self.kafka_version == "4.3.0"


def parse_kafka_version(text: str) -> str:
    """Return the full version, such as 4.3.0, for one of its spellings.

    Raises UnknownKafkaVersion.
    """
    try:
        return KAFKA_VERSIONS[text]
    except KeyError:
        raise UnknownKafkaVersion(text) from None
