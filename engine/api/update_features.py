"""UpdateFeatures (57): a cluster with znodes supports no feature, so each update is refused.

| update | INVALID_REQUEST with |
|---|---|
| no name | Feature name can not be empty. |
| an upgrade type other than 1, 2, 3 | Received unknown upgrade type. |
| a level below 1, as a downgrade | Can not delete non-existing finalized feature. |
| a level below 1, as an upgrade | … less than 1 without setting the SAFE downgradeType … |
| all others | … the provided feature is not supported. |

| versions | difference |
|---|---|
| 0 | downgrades are allowed, or not |
| 1 | upgrade types: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade; validate only |

Only the controller answers; another broker responds with NOT_CONTROLLER. Of several updates of
one feature there is one result.

Source: KafkaApis.handleUpdateFeatures, KafkaController.validateFeatureUpdate; KIP-584; a real
broker's responses.
"""

from __future__ import annotations

from typing import Final

from engine.api.exchange import Exchange
from engine.controller.controller import Controller
from engine.kafka_errors import INVALID_REQUEST, NOT_CONTROLLER
from engine.wire import messages

_UPGRADE: Final = 1
_DOWNGRADES: Final = (2, 3)
_FIRST_VERSION_OF_TYPES: Final = 1


class UpdateFeatures:
    """Refuses updates like a ZooKeeper-mode controller."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def handle(
        self, request: messages.UpdateFeaturesRequest, exchange: Exchange
    ) -> messages.UpdateFeaturesResponse:
        """Return a refusal for each feature: a cluster with ZooKeeper has no features to update.

        The rows are in the order of the request.
        """
        if not self._controller.is_active:
            return messages.UpdateFeaturesResponse(
                error_code=NOT_CONTROLLER,
                error_message="This is not the correct controller for this cluster.",
            )
        refusals = {
            update.feature: _refusal_message(update, exchange.api_version)
            for update in reversed(request.feature_updates)
        }
        names = dict.fromkeys(update.feature for update in request.feature_updates)
        result = messages.UpdateFeaturesResponse.UpdatableFeatureResult
        return messages.UpdateFeaturesResponse(
            error_message=None,
            results=[
                result(feature=name, error_code=INVALID_REQUEST, error_message=refusals[name])
                for name in names
            ],
        )


def _refusal_message(update: messages.UpdateFeaturesRequest.FeatureUpdateKey, version: int) -> str:
    """Return Kafka's message for a refused update in a cluster without features."""
    upgrade_type = update.upgrade_type
    if version < _FIRST_VERSION_OF_TYPES:
        upgrade_type = _DOWNGRADES[0] if update.allow_downgrade else _UPGRADE
    if not update.feature:
        return "Feature name can not be empty."
    if upgrade_type not in (_UPGRADE, *_DOWNGRADES):
        return "Received unknown upgrade type."
    if update.max_version_level >= 1:
        return (
            "Could not apply finalized feature update because the provided feature is not "
            "supported."
        )
    if upgrade_type in _DOWNGRADES:
        return "Can not delete non-existing finalized feature."
    return (
        f"Can not provide versionLevel: {update.max_version_level} less than 1 without setting "
        "the SAFE downgradeType in the request."
    )
