"""DescribeConfigs: settings of topics, of this broker, and levels of its loggers.

| resource | answered |
|---|---|
| a topic | every key of topics; its overrides are read from its znode |
| this broker's id | every key that is not internal, and all others that are set |
| the empty name of a broker | the defaults of all brokers |
| this broker's loggers | the level that counts for each |
| client metrics | INVALID_REQUEST: only without ZooKeeper |

No keys, or null, request all; unknown keys are left out. An unknown type fails
all resources of the request. Entries come in the order of Kafka's hash map.
Documentation is null where it was not requested or there is none (of plug-ins' and listeners' keys,
of throttles), and empty for loggers.

Source: kafka.server.ConfigHelper of 3.9.1; `config.describe` for the entries.
Differs: the words of the documentation are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from engine.admin.config_admin import ConfigAdmin
from engine.admin.config_errors import InvalidRequest, UnknownTopic
from engine.admin.topic_rules import check_name
from engine.api.admission import AclOperation, NotAuthorized, Session
from engine.api.config_loggers import LoggerLevels
from engine.api.config_resources import (
    RESOURCE_TYPES,
    ResourceResult,
    ResourceType,
    require_allowed,
    require_own_id,
    result_of_error,
)
from engine.api.exchange import Exchange
from engine.api.promised import promised
from engine.config.describe import (
    DescribedConfig,
    describe_broker,
    describe_broker_defaults,
    describe_topic,
)
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError, EngineError
from engine.hash_order import in_hash_order
from engine.host.promise import Promise
from engine.kafka_errors import INVALID_REQUEST, INVALID_REQUEST_DETAIL, UNKNOWN_SERVER_ERROR
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages
from engine.znode.paths import TOPIC_CONFIGS

_OF_LOGGER = 6


class DescribeConfigs:
    """Answers DescribeConfigs; `settings` returns the broker's current settings."""

    def __init__(
        self,
        broker_id: int,
        metadata_cache: MetadataCache,
        admin: ConfigAdmin,
        settings: Callable[[], BrokerSettings],
        loggers: LoggerLevels,
    ) -> None:
        """Create the handler for this broker; `loggers` has the levels of the broker's loggers."""
        self._broker_id = broker_id
        self._metadata_cache = metadata_cache
        self._admin = admin
        self._settings = settings
        self._loggers = loggers

    def handle(
        self, request: messages.DescribeConfigsRequest, exchange: Exchange
    ) -> messages.DescribeConfigsResponse | Promise[messages.DescribeConfigsResponse]:
        """Promise the settings of each resource.

        One unknown resource type refuses the whole request. Settings of topics are read from the
        metadata store.
        """
        resources = request.resources
        if any(resource.resource_type not in RESOURCE_TYPES for resource in resources):
            refused = ResourceResult(INVALID_REQUEST, INVALID_REQUEST_DETAIL)
            return messages.DescribeConfigsResponse(
                results=[self._refusal_row(resource, refused) for resource in resources]
            )
        return promised(self._describe_resources(request, exchange.session))

    async def _describe_resources(
        self, request: messages.DescribeConfigsRequest, session: Session
    ) -> messages.DescribeConfigsResponse:
        """Return the settings of each resource, or its error.

        Resources that ACLs deny come last.
        """
        results, denied = [], []
        for resource in request.resources:
            try:
                require_allowed(session, resource, AclOperation.DESCRIBE_CONFIGS)
            except NotAuthorized as error:
                refused = result_of_error(error, resource.resource_type, resource.resource_name)
                denied.append(self._refusal_row(resource, refused))
                continue
            try:
                rows = await self._setting_rows(request, resource)
                results.append(self._resource_row(resource, rows))
            except ConfigError:
                # A stored value that cannot be read is the broker's fault, not that of the request.
                results.append(self._refusal_row(resource, ResourceResult(UNKNOWN_SERVER_ERROR)))
            except EngineError as error:
                result = result_of_error(error, resource.resource_type, resource.resource_name)
                if isinstance(error, UnknownTopic):
                    result = result._replace(message="")
                results.append(self._refusal_row(resource, result))
        return messages.DescribeConfigsResponse(results=[*results, *denied])

    def _refusal_row(
        self,
        resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
        result: ResourceResult,
    ) -> messages.DescribeConfigsResponse.DescribeConfigsResult:
        """Return the response row of a resource that cannot be described.

        It has the error code and a message.
        """
        return messages.DescribeConfigsResponse.DescribeConfigsResult(
            error_code=result.code,
            error_message=result.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    def _resource_row(
        self,
        resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
        rows: Iterable[messages.DescribeConfigsResponse.DescribeConfigsResourceResult],
    ) -> messages.DescribeConfigsResponse.DescribeConfigsResult:
        """Return the response row of a resource with its settings: the requested ones, or all.

        They are in the order of Kafka's hash map, which clients see.
        """
        keys = resource.configuration_keys
        wanted = frozenset(keys) if keys else None
        by_name = {row.name: row for row in rows if wanted is None or row.name in wanted}
        return messages.DescribeConfigsResponse.DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[by_name[name] for name in in_hash_order(by_name)],
        )

    async def _setting_rows(
        self,
        request: messages.DescribeConfigsRequest,
        resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
    ) -> list[messages.DescribeConfigsResponse.DescribeConfigsResourceResult]:
        """Return one row per setting of a resource; raise EngineError if it is refused."""
        kind, name = resource.resource_type, resource.resource_name
        if kind == ResourceType.BROKER_LOGGER:
            return self._logger_rows(name)
        if kind == ResourceType.TOPIC:
            described = await self._describe_topic(name)
        elif kind == ResourceType.BROKER:
            described = self._describe_broker(name)
        elif name:
            raise InvalidRequest("Config type client-metrics is only supported on KRaft clusters")
        else:
            raise InvalidRequest("Client metrics subscription name must not be empty")
        texts = _documentation(kind) if request.include_documentation else {}
        return [
            self._setting_row(
                config, texts.get(config.name), with_synonyms=request.include_synonyms
            )
            for config in described
        ]

    async def _describe_topic(self, topic: str) -> list[DescribedConfig]:
        """Return the settings of a topic.

        Raises InvalidTopicName for a bad name, and UnknownTopic.
        """
        check_name(topic)
        if topic not in self._metadata_cache.topics:
            raise UnknownTopic(topic)
        overrides = await self._admin.read(f"{TOPIC_CONFIGS}/{topic}")
        return describe_topic(self._settings(), overrides)

    def _describe_broker(self, name: str) -> list[DescribedConfig]:
        """Return this broker's settings; for an empty name the cluster-wide dynamic defaults."""
        if not name:
            return describe_broker_defaults(self._settings())
        require_own_id(name, self._broker_id, what="Broker", end=" or empty string,")
        return describe_broker(self._settings())

    def _logger_rows(
        self, name: str
    ) -> list[messages.DescribeConfigsResponse.DescribeConfigsResourceResult]:
        """Return the level of each logger of this broker.

        Raises InvalidRequest for an empty id or that of another broker.
        """
        if not name:
            raise InvalidRequest("Broker id must not be empty")
        require_own_id(name, self._broker_id, what="Broker", end="")
        row = messages.DescribeConfigsResponse.DescribeConfigsResourceResult
        return [
            row(name=logger, value=level, config_source=_OF_LOGGER)
            for logger, level in sorted(self._loggers.levels().items())
        ]

    def _setting_row(
        self, config: DescribedConfig, documentation: str | None, *, with_synonyms: bool
    ) -> messages.DescribeConfigsResponse.DescribeConfigsResourceResult:
        """Return the response row of one setting.

        Its synonyms are the places that set it or could.
        """
        synonym = messages.DescribeConfigsResponse.DescribeConfigsSynonym
        row = messages.DescribeConfigsResponse.DescribeConfigsResourceResult(
            name=config.name,
            value=config.value,
            read_only=config.is_read_only,
            config_source=config.source.value,
            is_sensitive=config.is_sensitive,
            config_type=config.type,
            documentation=documentation,
        )
        if with_synonyms:
            row.synonyms = [
                synonym(name=row.name, value=row.value, source=row.source.value)
                for row in config.synonyms
            ]
        return row


def _documentation(kind: int) -> Mapping[str, str]:
    """Return the documentation of each setting of topics or of brokers, by name."""
    from engine.config.documentation import broker_documentation, topic_documentation

    return topic_documentation() if kind == ResourceType.TOPIC else broker_documentation()
