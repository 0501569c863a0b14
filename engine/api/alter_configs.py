"""AlterConfigs: replace all settings of a resource.

Settings that the request does not name are unset. Clients since 2.3 send
IncrementalAlterConfigs instead; loggers cannot be changed this way.

Source: KafkaApis.handleAlterConfigsRequest of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.admin.config_alteration import ConfigAlteration, Edit
from engine.admin.config_errors import InvalidRequest
from engine.admin.config_operations import check_configs
from engine.api.admission import AclOperation
from engine.api.altered_configs import alter_configs_rows, alter_each, alter_resource
from engine.api.config_resources import ResourceResult, ResourceType, require_allowed
from engine.api.exchange import Exchange
from engine.config.key import ConfigKey
from engine.host.promise import Promise
from engine.wire import messages


class AlterConfigs:
    """Answers AlterConfigs."""

    def __init__(self, alteration: ConfigAlteration) -> None:
        self._alteration = alteration

    def handle(
        self, request: messages.AlterConfigsRequest, exchange: Exchange
    ) -> Promise[messages.AlterConfigsResponse]:
        """Replace all settings of each named resource.

        Promises the response, with a row for each.
        """

        async def alter(resource: messages.AlterConfigsRequest.AlterConfigsResource) -> None:
            """Replace the settings of one resource; a null value leaves its key at the default."""
            check_configs(resource.configs)
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                raise InvalidRequest(f"Unknown resource type {resource.resource_type}")
            require_allowed(exchange.session, resource, AclOperation.ALTER_CONFIGS)
            wanted = {c.name: c.value for c in resource.configs if c.value is not None}

            def replace(
                _current: Mapping[str, str], _keys: Mapping[str, ConfigKey]
            ) -> dict[str, str]:
                """Return the requested settings as the new ones: current settings do not matter."""
                return wanted

            await alter_resource(
                self._alteration,
                resource,
                Edit(replace, wanted),
                validate_only=request.validate_only,
            )

        return alter_each(request.resources, alter).then(_response)


def _response(
    results: list[tuple[messages.AlterConfigsRequest.AlterConfigsResource, ResourceResult]],
) -> messages.AlterConfigsResponse:
    """Return the AlterConfigs response with one row per resource."""
    response = messages.AlterConfigsResponse
    return response(responses=alter_configs_rows(response.AlterConfigsResourceResponse, results))
