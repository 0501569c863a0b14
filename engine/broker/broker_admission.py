"""The admission of requests in a broker: its authorizer and its client quotas.

Source: kafka.server.QuotaFactory, KafkaServer.startup (authorizer).
"""

from __future__ import annotations

from engine.api.admission import Admission, AllowAll
from engine.api.enforced_quotas import EnforcedQuotas, QuotaWindows
from engine.broker.access_rules import AccessRules
from engine.broker.host import BrokerHost
from engine.broker.quota_settings import QuotaSettings
from engine.config.broker_config import BrokerConfig
from engine.znode.paths import sanitized


def broker_admission(
    config: BrokerConfig, quotas: QuotaSettings, rules: AccessRules | None, host: BrokerHost
) -> Admission:
    """Return the rules by which requests are admitted; changed quotas or ACLs refresh them.

    Without `rules` every principal may do everything.
    """
    enforced = EnforcedQuotas(
        quotas.limits,
        _quota_windows(config),
        clock=host.clock,
        timers=host.timers,
        work_ns=host.work_ns,
        sanitize=sanitized,
    )
    admission = Admission(AllowAll() if rules is None else rules.authorizer, enforced)
    quotas.on_change = admission.refresh
    if rules is not None:
        rules.admin.on_change = admission.refresh
    return admission


def _quota_windows(config: BrokerConfig) -> QuotaWindows:
    """Return the number and length (ms) of the windows in which client quotas are measured."""
    return QuotaWindows(
        config.quota_window_num,
        config.quota_window_size_seconds * 1000,
        config.controller_quota_window_num,
        config.controller_quota_window_size_seconds * 1000,
    )
