"""Describe and change the features of a cluster: supported and finalized levels.

Source: KIP-584, KIP-778; KafkaAdminClient.describeFeatures, updateFeatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from engine.client.blocking import CONTROLLER, KafkaClient
from engine.client.connection import Call, VersionRange
from engine.client.every_broker import send_to_every_broker
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import NONE
from engine.wire import messages

_API_VERSIONS: Final = "ApiVersions"
_LOWEST_WITH_FEATURES: Final = 3
_REQUEST: Final = messages.ApiVersionsRequest(
    client_software_name="kctl", client_software_version="0"
)
_VALIDATE_LOWEST: Final = 1


class FeatureChange(IntEnum):
    """Direction in which a finalized level may change."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A feature and its new level; 0 disables it."""

    feature: str
    level: int
    change: FeatureChange


class FeaturesView(NamedTuple):
    """Supported and finalized levels by feature; `epoch` is None without finalized features."""

    supported: dict[str, VersionRange]
    finalized: dict[str, int]
    epoch: int | None


def describe_features(client: KafkaClient) -> FeaturesView:
    """Return supported and finalized features as any one broker reports them; raises ApiError."""
    response: messages.ApiVersionsResponse = client.send(
        _API_VERSIONS, _REQUEST, lowest=_LOWEST_WITH_FEATURES
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return _features_view(response)


def features_by_broker(
    client: KafkaClient,
) -> tuple[dict[int, FeaturesView], dict[int, EngineError]]:
    """Return the features that each broker reports, by broker id, and the errors by broker id."""
    call = Call(_API_VERSIONS, _REQUEST, _LOWEST_WITH_FEATURES)
    responses, failures = send_to_every_broker(client, call)
    return {
        broker_id: _features_view(response) for broker_id, response in responses.items()
    }, failures


def _features_view(response: messages.ApiVersionsResponse) -> FeaturesView:
    """Return the supported and finalized features; the epoch is None if the response has -1."""
    epoch = response.finalized_features_epoch
    return FeaturesView(
        {
            row.name: VersionRange(row.min_version, row.max_version)
            for row in response.supported_features
        },
        {row.name: row.max_version_level for row in response.finalized_features},
        epoch if epoch >= 0 else None,
    )


def update_features(
    client: KafkaClient, updates: Sequence[FeatureUpdate], *, validate_only: bool
) -> dict[str, ApiError | None]:
    """Change feature levels; return the error of each feature, None for one that was accepted.

    With `validate_only` nothing changes. Raises the errors of the request.
    """
    request = messages.UpdateFeaturesRequest

    def message(version: int) -> messages.UpdateFeaturesRequest:
        """Build UpdateFeatures; version 0 has only `allow_downgrade` and no validation."""
        rows = [
            request.FeatureUpdateKey(feature=it.feature, max_version_level=it.level)
            for it in updates
        ]
        for row, update in zip(rows, updates, strict=True):
            if version == 0:
                row.allow_downgrade = update.change is not FeatureChange.UPGRADE
            else:
                row.upgrade_type = update.change
        made = request(timeout_ms=client.timeout_ms, feature_updates=rows)
        if version > 0:
            made.validate_only = validate_only
        return made

    response: messages.UpdateFeaturesResponse = client.send(
        "UpdateFeatures",
        # A message, not a function: `is_reading` reads its `validate_only`.
        message(_VALIDATE_LOWEST) if validate_only else message,
        to=CONTROLLER,
        lowest=_VALIDATE_LOWEST if validate_only else 0,
        retriable_code=lambda answer: int(answer.error_code),
    ).message
    results: dict[str, ApiError | None] = {update.feature: None for update in updates}
    if response.error_code != NONE:
        error = api_error(response.error_code, response.error_message)
        return dict.fromkeys(results, error)
    for row in response.results or ():
        if row.error_code != NONE:
            results[row.feature] = api_error(row.error_code, row.error_message)
    return results
