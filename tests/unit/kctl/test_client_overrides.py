from __future__ import annotations

from pathlib import Path

import pytest

from engine.client.errors import ClientSettingRefused
from engine.client.settings import CLIENT_KEYS, client_settings
from engine.cluster.plan import ClusterPlan
from kctl.arguments import UnreadableArgument
from kctl.client_overrides import UnknownClientSetting, merge_over_file, parse_client_overrides
from kctl.commands.demo.clusters import demo_cluster
from kctl.connect import ClusterOptions
from kctl.options.cluster import on_cluster
from tests.cli.commands import all_leaves

EXAMPLES = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'x required username="a" password="b";',
    "ssl.truststore.type": "PEM",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.key": "k",
    "ssl.keystore.certificate.chain": "c",
    "request.timeout.ms": "1234",
    "socket.connection.setup.timeout.ms": "1234",
    "retry.backoff.ms": "12",
    "retry.backoff.max.ms": "1234",
    "ssl.endpoint.identification.algorithm": "",
}


def test_settings_are_distinguished_and_the_last_one_counts() -> None:
    found = parse_client_overrides(["linger.ms=5", "client.id = me", "linger.ms=7"], ["linger.ms"])
    assert ({"client.id": "me"}, {"linger.ms": "7"}) == found


def test_a_value_may_have_equals_signs() -> None:
    assert {"sasl.password": "a=b"} == parse_client_overrides(["sasl.password=a=b"]).shared


@pytest.mark.parametrize("word", ["", "client.id", "=x"])
def test_what_is_no_setting_is_refused(word: str) -> None:
    with pytest.raises(UnreadableArgument):
        parse_client_overrides([word])


@pytest.mark.parametrize("word", ["sasl.password:hunter2", "=hunter2", "sasl.password hunter2"])
def test_what_may_be_a_password_is_not_shown(word: str) -> None:
    with pytest.raises(UnreadableArgument) as caught:
        parse_client_overrides([word])
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_a_setting_without_an_effect_is_refused_and_the_others_are_named() -> None:
    with pytest.raises(UnknownClientSetting, match="liger") as caught:
        parse_client_overrides(["liger.ms=5"], ["linger.ms"])
    hint = str(caught.value.hint)
    assert hint.startswith("did you mean linger.ms? known are")
    assert all(key in hint for key in CLIENT_KEYS)


JAAS = 'x required username="admin" password="a" tokenauth=true;'


@pytest.mark.parametrize("password", ["a", "b"])
def test_a_user_goes_before_the_one_of_a_jaas_line_in_the_file(password: str) -> None:
    in_file = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    given = {"sasl.username": "bob", **({} if password == "a" else {"sasl.password": password})}
    login = client_settings(merge_over_file({**in_file, "sasl.jaas.config": JAAS}, given)).sasl
    assert login is not None
    assert ("bob", password, False) == (login.username, login.password, login.is_token)


def test_a_jaas_line_of_another_kind_stays_beside_a_user() -> None:
    in_file = {"sasl.jaas.config": 'x required clientId="a" clientSecret="b";'}
    assert in_file.items() <= merge_over_file(in_file, {"sasl.username": "bob"}).items()


@pytest.mark.parametrize(
    ("in_file", "given"),
    [
        ("ssl.truststore.location", "ssl.ca.location"),
        ("ssl.truststore.location", "ssl.truststore.certificates"),
        ("ssl.truststore.certificates", "ssl.truststore.location"),
        ("ssl.ca.location", "ssl.truststore.location"),
        ("ssl.keystore.location", "ssl.certificate.location"),
        ("ssl.keystore.key", "ssl.certificate.location"),
        ("ssl.keystore.key", "ssl.keystore.location"),
        ("ssl.keystore.location", "ssl.keystore.key"),
    ],
)
def test_certificates_go_before_those_of_the_file_in_any_spelling(in_file: str, given: str) -> None:
    def of(key: str, value: str) -> dict[str, str]:
        chain = {"ssl.keystore.certificate.chain": value}
        return {key: value, **(chain if key == "ssl.keystore.key" else {})}

    protocol = {"security.protocol": "SSL"}
    merged = merge_over_file({**protocol, **of(in_file, "old")}, of(given, "new"))
    assert client_settings({**protocol, **of(given, "new")}) == client_settings(merged)


def test_other_settings_of_the_file_stay() -> None:
    in_file = {"client.id": "a", "ssl.truststore.location": "t", "ssl.truststore.password": "p"}
    assert {**in_file, "client.id": "b"} == merge_over_file(in_file, {"client.id": "b"})


def test_a_time_is_read_in_ms() -> None:
    found = parse_client_overrides(["delivery.timeout.ms=1500"], ["delivery.timeout.ms"])
    assert (1.5, 30.0) == (found.seconds("delivery.timeout.ms", 30.0), found.seconds("x", 30.0))
    for text in ("0", "1s", "-1"):
        wrong = parse_client_overrides([f"delivery.timeout.ms={text}"], ["delivery.timeout.ms"])
        with pytest.raises(UnreadableArgument):
            wrong.seconds("delivery.timeout.ms", 30.0)


@pytest.mark.parametrize("key", CLIENT_KEYS)
def test_every_known_setting_changes_a_client_or_is_checked(key: str) -> None:
    basis = {"security.protocol": "SASL_SSL", **EXAMPLES}
    without = {k: v for k, v in basis.items() if k != key}
    given = {**basis, key: EXAMPLES.get(key, "else")}
    if key in ("sasl.username", "sasl.password"):
        for settings in (without, given):
            settings["sasl.jaas.config"] = ""
            settings["sasl.username"] = settings.get("sasl.username", "u")
            settings["sasl.password"] = settings.get("sasl.password", "p")
    if key == "sasl.oauthbearer.token.endpoint.url":
        for settings in (without, given):
            settings["sasl.mechanism"] = "OAUTHBEARER"
        given[key] = "file:/token"
    if key == "ssl.ca.location":
        given.pop("ssl.truststore.location", None)
    try:
        before = client_settings(without)
    except ClientSettingRefused:
        # It is needed, so it has an effect.
        assert client_settings(given)
        return
    if key.endswith(".type"):
        with pytest.raises(ClientSettingRefused):
            client_settings({**given, key: "BKS"})
        return
    assert before != client_settings(given)


def test_every_command_that_talks_to_a_cluster_takes_client_settings() -> None:
    options = {
        words: [name for parameter in command.params for name in parameter.opts]
        for words, command in all_leaves().items()
    }
    files = {"--command-config", "--source-config"}
    talking = {words for words, names in options.items() if files & set(names)}
    # Keeping a context talks to nobody.
    talking.remove("context set")
    assert len(talking) > 50
    assert [] == sorted(words for words in talking if 1 != options[words].count("-X"))


def test_settings_of_the_command_line_are_those_of_the_clients() -> None:
    @on_cluster
    def command(cluster: ClusterOptions) -> int:
        return len(cluster.overrides)

    given = {"bootstrap": None, "command_config": None, "context": None, "timeout": 1.0}
    settings = ["client.id=me", "request.timeout.ms=5", "client.id=you"]
    assert 0 == command(**given, client_settings=None)
    assert 2 == command(**given, client_settings=settings)
    with pytest.raises(UnknownClientSetting, match="linger"):
        command(**given, client_settings=["linger.ms=5"])


def test_the_clients_of_a_demo_have_them_too(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=of-the-file\nretry.backoff.ms=12\n")
    options = ClusterOptions("127.0.0.1:9", str(file), overrides={"client.id": "me"})
    with demo_cluster(options, ClusterPlan()) as cluster:
        assert {"client.id": "me", "retry.backoff.ms": "12"} == cluster.properties
