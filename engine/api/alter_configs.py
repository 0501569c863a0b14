"""AlterConfigs: all settings of a resource replaced by those given.

What is not named is unset. Clients since 2.3 send IncrementalAlterConfigs instead; loggers cannot
be changed this way.

Source: KafkaApis.handleAlterConfigsRequest of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from engine.api.admission import AclOperation
from engine.api.config_alteration import ConfigAlteration, answer_each
from engine.api.config_operations import check_configs
from engine.api.config_resources import (
    InvalidRequest,
    ResourceType,
    alteration_reply,
    require_allowed,
)
from engine.api.exchange import Exchange
from engine.config.key import ConfigKey
from engine.wire.structs import message_class


class AlterConfigs:
    """Writes settings."""

    def __init__(self, alteration: ConfigAlteration) -> None:
        self._alteration = alteration
        self._response = message_class("AlterConfigsResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Promise an answer for each resource."""

        async def alter(resource: Any) -> None:
            check_configs(resource.configs)
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                raise InvalidRequest(f"Unknown resource type {resource.resource_type}")
            require_allowed(exchange.session, resource, AclOperation.ALTER_CONFIGS)
            wanted = {config.name: config.value for config in resource.configs}

            def edit(_current: Mapping[str, str], _keys: Mapping[str, ConfigKey]) -> dict[str, str]:
                return wanted

            await self._alteration.alter(resource, edit, validate_only=request.validate_only)

        return answer_each(request.resources, alter, partial(alteration_reply, self._response))
