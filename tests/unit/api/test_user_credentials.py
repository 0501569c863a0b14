"""Credentials of users: who may alter them, and in which order that is asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.admin.user_credentials import CredentialAdmin
from engine.api.admission import Admission, NoQuotas, Session
from engine.api.exchange import Exchange
from engine.api.user_credentials import UserScramCredentials
from engine.controller.controller import Controller
from engine.kafka_errors import CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER
from engine.wire import messages
from tests.unit.api.authorizers import DenyAll


@pytest.mark.parametrize(
    ("is_active", "code"), [(False, NOT_CONTROLLER), (True, CLUSTER_AUTHORIZATION_FAILED)]
)
def test_who_may_not_alter_hears_first_that_another_broker_is_the_controller(
    is_active: bool, code: int
) -> None:
    of = messages.AlterUserScramCredentialsRequest
    request = of(deletions=[of.ScramCredentialDeletion(name="u", mechanism=1)])
    controller = cast(Controller, SimpleNamespace(is_active=is_active))
    apis = UserScramCredentials(cast(CredentialAdmin, None), controller)
    session = Session("1.2.3.4:5", Admission(DenyAll(), NoQuotas()))
    exchange = cast(Exchange, SimpleNamespace(session=session, api_version=0))
    response = cast(Any, apis.alter(request, exchange))
    assert [("u", code)] == [(one.user, one.error_code) for one in response.results]
