"""How credentials of users are changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ApiError
from engine.wire import messages
from kctl.commands.users import credentials
from kctl.commands.users.credentials import PasswordRequest, create_user, delete_users, rotate_user
from kctl.connect import ClusterOptions
from kctl.passwords import NoPassword, PasswordOptions
from tests.unit.client.fake_broker import FakeCluster


class Users(FakeCluster):
    """A cluster whose user has both mechanisms; it answers `error` from change `failing` on."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[int] = []
        self.failing, self.error = 9, 0
        self.user = "app"
        self.handlers |= {
            "DescribeUserScramCredentials": self._describe,
            "AlterUserScramCredentials": self._alter,
        }

    def _describe(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        response = messages.DescribeUserScramCredentialsResponse
        result = response.DescribeUserScramCredentialsResult
        infos = [response.CredentialInfo(mechanism=one, iterations=4096) for one in (1, 2)]
        return response(results=[result(user=self.user, credential_infos=infos)])

    def _alter(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        self.changes.append(len(request.deletions) + len(request.upsertions))
        response = messages.AlterUserScramCredentialsResponse
        code = self.error if len(self.changes) >= self.failing else 0
        result = response.AlterUserScramCredentialsResult(
            user=self.user, error_code=code, error_message=None
        )
        return response(results=[result])


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Users:
    cluster = Users()
    monkeypatch.setattr(credentials, "connect", lambda options: cluster.client())
    return cluster


def rotate(path: Path, user: str = "app") -> int:
    password = PasswordOptions(generate=True, out=str(path))
    request = PasswordRequest(user, None, None, password, dry_run=False, output="csv")
    return rotate_user(ClusterOptions(), request)


@pytest.mark.parametrize("change", [create_user, rotate_user])
def test_a_made_password_that_nobody_would_see_is_refused(
    cluster: Users, change: Callable[[ClusterOptions, PasswordRequest], int]
) -> None:
    password = PasswordOptions(generate=True)
    request = PasswordRequest("app", None, None, password, dry_run=False, output="name")
    with pytest.raises(NoPassword, match="nobody would see"):
        change(ClusterOptions(), request)
    assert not cluster.changes


def test_a_request_changes_one_credential(cluster: Users, tmp_path: Path) -> None:
    rotate(tmp_path / "p")
    delete_users(ClusterOptions(), ["app"], None, dry_run=False, yes=True, output="csv")
    assert [1, 1, 1, 1] == cluster.changes


@pytest.mark.parametrize(("user", "is_noted"), [("jürgen", True), ("al ice=,~", False)])
def test_a_user_whom_no_broker_lets_in_is_noted(
    cluster: Users,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    user: str,
    is_noted: bool,
) -> None:
    """A password is set all the same, as Kafka's tool sets it."""
    cluster.user = user
    rotate(tmp_path / "p", user)
    assert is_noted == ("refuse SCRAM users" in capsys.readouterr().err)
    assert [1, 1] == cluster.changes


@pytest.mark.parametrize(
    ("failing", "error", "is_kept"), [(1, 44, False), (1, 7, True), (2, 44, True)]
)
def test_a_password_that_the_cluster_may_have_stays_in_its_file(
    cluster: Users, tmp_path: Path, failing: int, error: int, is_kept: bool
) -> None:
    cluster.failing, cluster.error = failing, error
    with pytest.raises(ApiError):
        rotate(tmp_path / "p")
    assert is_kept == (tmp_path / "p").exists()
