"""IncrementalAlterConfigs: single settings set, unset, or changed as lists.

Topics and brokers are written to znodes, loggers changed in this process (KIP-339, KIP-412).

Source: KafkaApis.handleIncrementalAlterConfigsRequest of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.admin.config_alteration import ConfigAlteration, Edit
from engine.admin.config_errors import InvalidConfiguration, InvalidRequest
from engine.admin.config_operations import Operation, apply_operations, check_configs
from engine.api.admission import AclOperation
from engine.api.altered_configs import alter_configs_rows, alter_each, alter_resource
from engine.api.config_loggers import LoggerLevels, alter_loggers
from engine.api.config_resources import (
    ResourceResult,
    ResourceType,
    require_allowed,
    require_own_id,
)
from engine.api.exchange import Exchange
from engine.config.key import ConfigKey
from engine.host.promise import Promise
from engine.wire import messages
from engine.znode.errors import InvalidZnodePath, ZnodeLimitExceeded
from engine.znode.names import check_path
from engine.znode.paths import topic_config_path


class IncrementalAlterConfigs:
    """Answers IncrementalAlterConfigs."""

    def __init__(self, alteration: ConfigAlteration, loggers: LoggerLevels) -> None:
        self._alteration = alteration
        self._loggers = loggers

    def handle(
        self, request: messages.IncrementalAlterConfigsRequest, exchange: Exchange
    ) -> Promise[messages.IncrementalAlterConfigsResponse]:
        """Set, delete, append or subtract settings of each resource; promise the response."""

        async def alter(
            resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource,
        ) -> None:
            """Apply the operations on one resource; raise EngineError if it is refused."""
            check_configs(resource.configs)
            if resource.resource_type == ResourceType.BROKER:
                self._check_broker(resource)
            require_allowed(exchange.session, resource, AclOperation.ALTER_CONFIGS)
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                require_own_id(resource.resource_name, self._alteration.broker_id)
                alter_loggers(self._loggers, resource.configs, validate_only=request.validate_only)
                return
            if resource.resource_type == ResourceType.TOPIC and resource.resource_name:
                _check_topic(resource.resource_name)

            def edit(current: Mapping[str, str], keys: Mapping[str, ConfigKey]) -> dict[str, str]:
                """Return the settings after the requested operations on the current ones."""
                return apply_operations(current, resource.configs, keys)

            named = {config.name: config.value for config in resource.configs}
            await alter_resource(
                self._alteration, resource, Edit(edit, named), validate_only=request.validate_only
            )

        return alter_each(request.resources, alter).then(_response)

    def _check_broker(
        self, resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource
    ) -> None:
        """Raise InvalidRequest for another broker's id, or an unknown operation.

        Kafka checks a broker's settings before it checks whether the client may change them.
        Source: ConfigAdminManager.preprocess of 3.9.1.
        """
        if resource.resource_name:
            require_own_id(resource.resource_name, self._alteration.broker_id)
        for config in resource.configs:
            if config.config_operation not in tuple(Operation):
                raise InvalidRequest(f"Unknown operations type {config.config_operation}")


def _response(
    results: list[
        tuple[messages.IncrementalAlterConfigsRequest.AlterConfigsResource, ResourceResult]
    ],
) -> messages.IncrementalAlterConfigsResponse:
    """Return the IncrementalAlterConfigs response with one row per resource."""
    response = messages.IncrementalAlterConfigsResponse
    return response(responses=alter_configs_rows(response.AlterConfigsResourceResponse, results))


def _check_topic(name: str) -> None:
    """Raise InvalidConfiguration for a topic name that no znode can have.

    Kafka reads a topic's settings before it checks whether the topic exists.
    """
    try:
        check_path(topic_config_path(name))
    except ZnodeLimitExceeded:
        return
    except InvalidZnodePath as error:
        raise InvalidConfiguration(str(error)) from error
