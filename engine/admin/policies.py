"""Policies of the operator: additional checks before topics are created or settings changed.

```python
from engine.admin.policies import CreateTopicRequest, PolicyViolationError


class AtMostTwelvePartitions:
    def configure(self, settings): ...                # optional: the broker's static settings

    def validate(self, request: CreateTopicRequest):
        if (request.num_partitions or 0) > 12:
            raise PolicyViolationError("at most 12 partitions")

    def close(self): ...                              # optional: when the broker stops
```

| setting | called for | with |
|---|---|---|
| `create.topic.policy.class.name` | CreateTopics, also to validate only; automatic creation | CreateTopicRequest |
| `alter.config.policy.class.name` | AlterConfigs, IncrementalAlterConfigs, also to validate only | AlterConfigRequest |

They are called last, after all other checks. They are not called for CreatePartitions,
DeleteTopics, logger levels and changes by brokers. `validate` runs on the broker's only thread: it
must not block.

| `validate` raises | the client gets |
|---|---|
| PolicyViolationError, any other ApiError | its code and message |
| ConfigError | INVALID_CONFIG with its rule (of a broker's settings INVALID_REQUEST) |
| any other exception | UNKNOWN_SERVER_ERROR without a message; the log has the traceback |

Source: KIP-108, KIP-133; ZkAdminManager.validateTopicCreatePolicy, validateConfigPolicy of 3.9.1, and
a real broker's responses with a policy.
"""  # noqa: E501 - a table

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from engine.admin.config_errors import PolicyFailed
from engine.errors import ApiError, ConfigError
from engine.host.plugin_class import load_plugin_class
from engine.kafka_errors import POLICY_VIOLATION

_log = logging.getLogger("kafka.server.ZkAdminManager")

CREATE_TOPIC_POLICY: Final = "create.topic.policy.class.name"
ALTER_CONFIG_POLICY: Final = "alter.config.policy.class.name"


class PolicyViolationError(ApiError):
    """A request breaks a policy; the policy raises it with the message for the client."""

    def __init__(self, message: str) -> None:
        super().__init__(POLICY_VIOLATION, message)


class CreateTopicRequest(NamedTuple):
    """A topic that is to be created.

    Counts are the effective ones, also if the request left them to the broker. They are None with
    an assignment; without one, `replicas_assignments` is None.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None
    #: Only the settings in the request.
    configs: Mapping[str, str]


class AlterConfigRequest(NamedTuple):
    """Settings that are to be changed.

    `configs` are the settings in the request: all settings of AlterConfigs; for
    IncrementalAlterConfigs the operands, None for deleted settings.
    """

    #: `TOPIC` or `BROKER`.
    resource_type: str
    #: A topic name or a broker id; empty for all brokers.
    resource_name: str
    configs: Mapping[str, str | None]


R = TypeVar("R", CreateTopicRequest, AlterConfigRequest)


class Policy(Generic[R]):
    """One policy of a broker."""

    def __init__(self, key: str, policy: Any) -> None:
        """Wrap an object of the operator's class; `key` is the setting that names the class.

        Raises ConfigError if it has no method `validate`.
        """
        self._policy = policy
        if not callable(getattr(policy, "validate", None)):
            raise ConfigError(key, type(policy).__name__, "has no method validate(request)")

    def validate(self, request: R) -> None:
        """Raise ApiError or ConfigError if the operator's policy forbids the request.

        PolicyFailed, an ApiError, replaces any other exception of the operator's code.
        """
        try:
            self._policy.validate(request)
        except (ApiError, ConfigError):
            raise
        except Exception as error:  # The operator's code may fail in any way.
            _log.error("The policy failed for %s", request, exc_info=error)
            raise PolicyFailed(str(error)) from error

    def close(self) -> None:
        """Call the policy's `close`, if it has one; errors are logged."""
        close = getattr(self._policy, "close", None)
        if close is None:
            return
        try:
            close()
        except Exception as error:  # As above; the broker stops anyway.
            _log.error("The policy cannot be closed", exc_info=error)


class Policies(NamedTuple):
    """The policies of a broker; None for one that is not set."""

    create_topic: Policy[CreateTopicRequest] | None = None
    alter_config: Policy[AlterConfigRequest] | None = None

    def close(self) -> None:
        """Close both policies, when the broker stops."""
        for policy in (self.create_topic, self.alter_config):
            if policy is not None:
                policy.close()


NO_POLICIES: Final = Policies()


def load_policies(
    create_topic: str | None, alter_config: str | None, static: Mapping[str, str]
) -> Policies:
    """Create the policies whose classes the settings name; raises ConfigError.

    `static` are the broker's settings, which the policies get.
    """
    return Policies(
        _load_policy(CREATE_TOPIC_POLICY, create_topic, static),
        _load_policy(ALTER_CONFIG_POLICY, alter_config, static),
    )


def _load_policy(key: str, text: str | None, static: Mapping[str, str]) -> Policy[R] | None:
    """Create and configure the policy class that the setting `key` names; None if it is not set.

    Raises ConfigError.
    """
    if text is None or not text.strip():
        return None
    made = load_plugin_class(key, text)
    try:
        policy = made()
        configure = getattr(policy, "configure", None)
        if configure is not None:
            configure(dict(static))
    except Exception as error:  # The operator's code may fail in any way.
        _log.error("%s of %s cannot be made", text, key, exc_info=error)
        raise ConfigError(key, text, f"cannot be made: {error}") from error
    return Policy(key, policy)
