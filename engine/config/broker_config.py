"""The broker settings that the engine reads, as typed values, and checks between them.

Settings of logs are not included: a `TopicConfig` has the topic's overrides or the broker's values.

Source: kafka.server.KafkaConfig (fields and validateValues) in ZooKeeper mode.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from engine.config.listeners import (
    ListenerAddress,
    advertised_listeners,
    inter_broker_listener,
    parse_listeners,
    parse_security_protocols,
    unparsed_pair,
)
from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.errors import ConfigError

_DEDUPE_BYTES_MIN = 1 << 20
_INT = re.compile(r"[+-]?[0-9]{1,10}", re.A)


class BrokerConfig(NamedTuple):
    """Values by key, with underscores for dots; a change at run time creates a new object."""

    listeners: str
    advertised_listeners: str | None
    listener_security_protocol_map: str
    inter_broker_listener_name: str | None
    security_inter_broker_protocol: str
    inter_broker_protocol_version: str
    control_plane_listener_name: str | None

    broker_id: int
    node_id: int
    broker_id_generation_enable: bool
    reserved_broker_max_id: int
    broker_rack: str | None
    log_dir: str
    log_dirs: str | None
    zookeeper_connect: str | None
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int | None

    num_network_threads: int
    num_io_threads: int
    background_threads: int
    queued_max_requests: int
    queued_max_request_bytes: int

    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_listen_backlog_size: int
    connections_max_idle_ms: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    max_connection_creation_rate: int
    connection_failed_authentication_delay_ms: int
    connections_max_reauth_ms: int
    request_timeout_ms: int

    auto_create_topics_enable: bool
    num_partitions: int
    default_replication_factor: int
    delete_topic_enable: bool
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_per_broker_percentage: int
    controlled_shutdown_enable: bool
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int
    controller_socket_timeout_ms: int

    create_topic_policy_class_name: str | None
    alter_config_policy_class_name: str | None

    num_recovery_threads_per_data_dir: int
    num_replica_fetchers: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_lag_time_max_ms: int
    replica_socket_timeout_ms: int
    replica_socket_receive_buffer_bytes: int
    replica_selector_class: str | None
    num_replica_alter_log_dirs_threads: int | None

    fetch_max_bytes: int
    fetch_purgatory_purge_interval_requests: int
    producer_purgatory_purge_interval_requests: int
    delete_records_purgatory_purge_interval_requests: int
    max_incremental_fetch_session_cache_slots: int

    log_retention_check_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_initial_task_delay_ms: int
    log_dir_failure_timeout_ms: int

    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_max_bytes_per_second: float

    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int

    offset_metadata_max_bytes: int
    offsets_load_buffer_size: int
    offsets_topic_replication_factor: int
    offsets_topic_num_partitions: int
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_commit_timeout_ms: int
    offsets_commit_required_acks: int

    transaction_max_timeout_ms: int
    transaction_state_log_replication_factor: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_segment_bytes: int
    transaction_state_log_load_buffer_size: int
    transactional_id_expiration_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_partition_verification_enable: bool
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int

    quota_window_num: int
    quota_window_size_seconds: int
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    alter_log_dirs_replication_quota_window_num: int
    alter_log_dirs_replication_quota_window_size_seconds: int
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int

    authorizer_class_name: str
    sasl_enabled_mechanisms: tuple[str, ...]
    sasl_mechanism_inter_broker_protocol: str
    sasl_server_max_receive_size: int
    ssl_client_auth: str
    password_encoder_secret: str | None
    password_encoder_old_secret: str | None
    password_encoder_cipher_algorithm: str
    password_encoder_keyfactory_algorithm: str | None
    password_encoder_key_length: int
    password_encoder_iterations: int
    delegation_token_secret_key: str | None
    delegation_token_master_key: str | None
    delegation_token_expiry_time_ms: int
    delegation_token_max_lifetime_ms: int
    delegation_token_expiry_check_interval_ms: int
    compression_type: str
    unclean_leader_election_enable: bool
    min_insync_replicas: int
    message_max_bytes: int

    @classmethod
    def parse(cls, settings: BrokerSettings) -> BrokerConfig:
        """Return the typed values of a broker's settings.

        Raises ConfigError if they are invalid.
        """
        values = [settings.value(field.replace("_", ".")) for field in cls._fields]
        config = cls._make(values)
        config._check(TopicConfig.of({}, settings), settings)
        generated = settings.generated_broker_id
        if generated is not None:
            return config._replace(broker_id=generated, node_id=generated)
        return config

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """The log directories: the paths in `log.dirs`, or `log.dir` if that is not set."""
        paths = (self.log_dir if self.log_dirs is None else self.log_dirs).split(",")
        return tuple(path.strip() for path in paths if path.strip())

    @property
    def security_protocols(self) -> dict[str, str]:
        """The security protocol of each listener name."""
        return parse_security_protocols(self.listener_security_protocol_map)

    @property
    def bound_listeners(self) -> tuple[ListenerAddress, ...]:
        """The addresses on which the broker accepts connections; raises ConfigError."""
        return parse_listeners("listeners", self.listeners, self.security_protocols)

    @property
    def effective_advertised_listeners(self) -> tuple[ListenerAddress, ...]:
        """The addresses that clients get: `advertised.listeners`, or the bound ones without it."""
        return advertised_listeners(
            self.advertised_listeners, self.bound_listeners, self.security_protocols
        )

    @property
    def inter_broker_endpoint(self) -> ListenerAddress:
        """The advertised listener to which other brokers connect; raises ConfigError."""
        return inter_broker_listener(
            self.effective_advertised_listeners,
            self.inter_broker_listener_name,
            self.security_inter_broker_protocol,
        )

    @property
    def connections_per_ip_overrides(self) -> dict[str, int]:
        """The connection limits of single hosts, by host name or address."""
        pairs = (
            override.rpartition(":")
            for override in _split_entries(self.max_connections_per_ip_overrides)
        )
        return {host.strip(): int(count) for host, _, count in pairs}

    def _checks_of_logs(self, logs: TopicConfig) -> tuple[tuple[str, object, bool, str], ...]:
        """Return the checks of log settings: name, value, whether the value is valid, and the rule.

        `logs` are the values that a topic without own settings has.
        """
        return (
            (
                "log.roll.ms",
                logs.segment_ms,
                logs.segment_ms >= 1,
                "requirement failed: log.roll.ms must be greater than or equal to 1",
            ),
            (
                "log.roll.jitter.ms",
                logs.segment_jitter_ms,
                logs.segment_jitter_ms >= 0,
                "requirement failed: log.roll.jitter.ms must be greater than or equal to 0",
            ),
            (
                "log.retention.ms",
                logs.retention_ms,
                logs.retention_ms == -1 or logs.retention_ms >= 1,
                "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or "
                "equal to 1",
            ),
            (
                "log.cleaner.threads",
                self.log_cleaner_threads,
                self.log_cleaner_threads >= 1,
                "must be at least 1",
            ),
            (
                "log.cleaner.dedupe.buffer.size",
                self.log_cleaner_dedupe_buffer_size,
                self.log_cleaner_dedupe_buffer_size // max(self.log_cleaner_threads, 1)
                > _DEDUPE_BYTES_MIN,
                "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per "
                "cleaner thread.",
            ),
        )

    def _check(self, logs: TopicConfig, settings: BrokerSettings) -> None:
        """Raise ConfigError if values are invalid or contradict each other.

        `logs` are the values that a topic without own settings has.
        """
        for key, value, holds, rule in (
            (
                "broker.id",
                self.broker_id,
                -1 <= self.broker_id <= self.reserved_broker_max_id
                if self.broker_id_generation_enable
                else self.broker_id >= 0,
                f"must be within [-1,...,{self.reserved_broker_max_id}], not -1 if ids are "
                "not generated",
            ),
            ("log.dirs", self.log_dirs, bool(self.data_dirs), "must name a directory"),
            *self._checks_of_logs(logs),
            (
                "replica.fetch.wait.max.ms",
                self.replica_fetch_wait_max_ms,
                self.replica_fetch_wait_max_ms <= self.replica_socket_timeout_ms,
                "must not exceed replica.socket.timeout.ms",
            ),
            (
                "replica.fetch.wait.max.ms",
                self.replica_fetch_wait_max_ms,
                self.replica_fetch_wait_max_ms <= self.replica_lag_time_max_ms,
                "must not exceed replica.lag.time.max.ms",
            ),
            (
                "queued.max.request.bytes",
                self.queued_max_request_bytes,
                self.queued_max_request_bytes <= 0
                or self.queued_max_request_bytes >= self.socket_request_max_bytes,
                "must be at least socket.request.max.bytes, or not positive",
            ),
            (
                "max.connections.per.ip",
                self.max_connections_per_ip,
                self.max_connections_per_ip > 0 or bool(self.max_connections_per_ip_overrides),
                "requirement failed: max.connections.per.ip can be set to zero only if "
                "max.connections.per.ip.overrides property is set.",
            ),
        ):
            if not holds:
                message = "/ by zero" if key == "log.cleaner.threads" else None
                raise ConfigError(key, value, rule, kafka_message=message)
        _check_overrides(self.max_connections_per_ip_overrides)
        _check_inter_broker(settings)
        _check_rebalance_protocols(settings)
        # Reading the listeners checks them.
        assert self.inter_broker_endpoint


def _check_inter_broker(settings: BrokerSettings) -> None:
    """Raise ConfigError if the inter-broker listener is named twice.

    Only one of its name and its protocol may be set.
    """
    name, protocol = "inter.broker.listener.name", "security.inter.broker.protocol"
    if (
        settings.configured_text(name) is not None
        and settings.configured_text(protocol) is not None
    ):
        rule = f"only one of {name} and {protocol} should be set"
        raise ConfigError(name, settings.configured_text(name), rule)


def _check_rebalance_protocols(settings: BrokerSettings) -> None:
    """Raise ConfigError if the consumer protocol of groups is enabled, which needs KRaft (KIP-848).

    Also if the classic protocol is disabled.

    Source: KafkaConfig.groupCoordinatorRebalanceProtocols of 3.9.1.
    """
    name = "group.coordinator.rebalance.protocols"
    text = settings.configured_text(name)
    if text is None:
        return
    protocols = _split_entries(text)
    if "classic" not in protocols:
        rule = "Disabling the 'classic' protocol is not supported."
        raise ConfigError(name, text, rule, kafka_message=rule)
    if "consumer" in protocols:
        rule = "The new 'consumer' rebalance protocol is only supported in KRaft cluster."
        raise ConfigError(name, text, rule, kafka_message=rule)


def _check_overrides(text: str) -> None:
    """Raise ConfigError unless each entry of a list is ADDRESS:COUNT."""
    for override in _split_entries(text):
        _, colon, count = override.rpartition(":")
        if not colon or not _is_int(count.strip()):
            key, rule = "max.connections.per.ip.overrides", f"{override!r} is not ADDRESS:COUNT"
            message = (
                f'For input string: "{count.strip()}"' if colon else unparsed_pair(key, override)
            )
            raise ConfigError(key, text, rule, kafka_message=message)


def _split_entries(text: str) -> list[str]:
    """Return the elements of a list as Java splits it: empty ones at the end are dropped."""
    entries = [part.strip() for part in text.split(",")]
    while entries and not entries[-1]:
        entries.pop()
    return entries


def _is_int(text: str) -> bool:
    """Return True if a text is a whole number that fits into a Java int."""
    return bool(_INT.fullmatch(text)) and -1 << 31 <= int(text) < 1 << 31
