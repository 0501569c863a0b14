"""`kctl cluster start --secure`: TLS, SCRAM, access rules and an administrator for a cluster.

| file of `security/` in the data directory | holds |
|---|---|
| `ca.key`, `ca.pem`, `broker.pem` | an authority, and the certificate of all brokers |
| `broker.properties` | the brokers as a client: PLAIN, for requests to each other |
| `admin.properties` | the administrator as a client: SCRAM-SHA-512; the context names it |
| `store.jaas` | the brokers as the only users of the metadata store |

Existing files are reused: passwords and keys change only if the files are removed. The single
listener accepts SCRAM-SHA-512 from users, and PLAIN from brokers only. Both the brokers' user and
the administrator are super users; other users need ALLOW rules. The brokers' user creates the
administrator's credential once the cluster runs, since no other user can. Nodes that existed
before the cluster was secured are then restricted to the brokers. If the cluster already had a
login to the store, it is kept.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.client.errors import AuthenticationFailed, Unreachable
from engine.client.scram_admin import NewCredential, alter_credentials, describe_credentials
from engine.client.settings import client_settings, parse_addresses
from engine.cluster.data_directory import DataDirectory
from engine.config.java_properties import encode_settings, parse_properties
from engine.errors import EngineError
from engine.host.ports import Entropy, Files
from engine.host.private_file import create_file
from engine.host.real import RealClock, RealEntropy, RealFiles
from engine.security.passwords import random_password
from engine.security.scram import ITERATIONS_MIN, ScramMechanism
from engine.znode.login import JAAS_FILE
from kctl import exits
from kctl.commands.certs.issuing import AUTHORITY, CertificatesRequest, write_certificates
from kctl.commands.cluster.node_protection import protect_nodes
from kctl.console import notify
from kctl.context import Profile, Profiles, change_profiles, load_profiles, profiles_path
from kctl.embedded import ADMIN_PROPERTIES, BROKER_KEYSTORE, EMBEDDED, KEYSTORE, cluster_path

if TYPE_CHECKING:
    from engine.client.blocking import KafkaClient

_ADMIN: Final = "admin"
_BROKER: Final = "broker"
_STORE_USER: Final = "kafka"
_LISTENER: Final = "SECURE"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_DIGEST: Final = "org.apache.zookeeper.server.auth.DigestLoginModule required"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
#: The longest validity that `kctl certs` allows: certificates outlive a rehearsal.
_DAYS: Final = 3650
_PASSWORD: Final = re.compile(r'password="([A-Za-z0-9]+)"')
_LOGIN_PAUSE_S: Final = 0.05


class SecureInForeground(EngineError):
    """--secure with --foreground: another process would have to create the administrator."""

    exit_code = exits.USAGE
    hint = "start it once without --foreground; its settings are kept for later starts"

    def __init__(self) -> None:
        super().__init__("--secure and --foreground do not go together")


class ContextTaken(EngineError):
    """The name of the secured cluster's context belongs to a context of another cluster."""

    exit_code = exits.USAGE

    def __init__(self, name: str) -> None:
        super().__init__(f"context {name} is there and is not of this cluster; nothing was started")
        self.hint = f"`kctl context delete {name}`, or another --data"
        self.name = name


class SecuredFiles(NamedTuple):
    """Paths of the files of a secured cluster."""

    folder: str

    @property
    def admin_properties(self) -> str:
        """Return the path of the properties with which the administrator's clients log in."""
        return f"{os.path.dirname(self.folder)}/{ADMIN_PROPERTIES}"

    @property
    def broker_properties(self) -> str:
        """Return the path of the properties with which a client logs in as a broker."""
        return f"{self.folder}/{_BROKER}.properties"

    @property
    def store_login(self) -> str:
        """Return the path of the JAAS file for the metadata store and its users."""
        return f"{self.folder}/store.jaas"

    @property
    def keystore(self) -> str:
        """Return the path of the PEM file with the brokers' key and certificate chain."""
        return f"{os.path.dirname(self.folder)}/{BROKER_KEYSTORE}"

    @property
    def truststore(self) -> str:
        """Return the path of the certificate authority's certificate, which clients trust."""
        return f"{self.folder}/{AUTHORITY}"

    def all_paths(self) -> list[str]:
        """Return the paths of all files that securing a cluster creates; they may not exist."""
        certificates = [f"{self.folder}/ca.key", self.truststore, self.keystore]
        return [*certificates, self.broker_properties, self.admin_properties, self.store_login]


def secured_files(data: DataDirectory) -> SecuredFiles:
    """Return the paths of a data directory's security files; the files may not exist."""
    return SecuredFiles(data.security_path)


def prepare_secure_settings(
    data: DataDirectory, files: Files, advertised: str | None = None
) -> dict[str, str]:
    """Create the missing security files, and return the settings of a secured cluster.

    A new certificate is valid for this machine, and for `advertised` unless it is None. Errors:
    ContextTaken, and those of creating certificates and files.
    """
    secured = secured_files(data)
    check_context(data)
    _create_missing_files(secured, files, RealEntropy(), [] if advertised is None else [advertised])
    password = _read_password(files, secured.broker_properties)
    listener = f"listener.name.{_LISTENER.lower()}"
    plain = f'{_PLAIN} username="{_BROKER}" password="{password}" user_{_BROKER}="{password}";'
    return {
        **_store_settings(data, secured),
        "listener.security.protocol.map": f"{_LISTENER}:SASL_SSL",
        "inter.broker.listener.name": _LISTENER,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        f"{listener}.plain.sasl.jaas.config": plain,
        f"{listener}.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
        "ssl.keystore.type": "PEM",
        KEYSTORE: secured.keystore,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": secured.truststore,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": f"User:{_ADMIN};User:{_BROKER}",
    }


def _store_settings(data: DataDirectory, secured: SecuredFiles) -> dict[str, str]:
    """Return the settings by which brokers log in at ZooKeeper and protect its nodes.

    Empty if the stored plan has another login for the metadata store.
    """
    plan = data.plan()
    stored = secured.store_login if plan is None else plan.settings.get(JAAS_FILE)
    if stored not in (None, secured.store_login):
        return {}
    return {"zookeeper.set.acl": "true", JAAS_FILE: secured.store_login}


def _create_missing_files(
    secured: SecuredFiles, files: Files, entropy: Entropy, hosts: Sequence[str]
) -> None:
    """Create the certificates, properties and JAAS files that a secured cluster lacks.

    Existing files are kept. The new certificate is also valid for `hosts`. Each new login has a
    random password.
    """
    files.make_dir(secured.folder)
    os.chmod(secured.folder, 0o700)
    if not files.exists(secured.keystore):
        request = CertificatesRequest(secured.folder, [_BROKER], [], hosts, _DAYS, "table")
        write_certificates(request, files, now_ms=RealClock().wall_ms())
    if not files.exists(secured.store_login):
        password = random_password(entropy)
        client = f'{_DIGEST} username="{_STORE_USER}" password="{password}";'
        server = f'{_DIGEST} user_{_STORE_USER}="{password}";'
        text = f"Client {{\n  {client}\n}};\nServer {{\n  {server}\n}};\n"
        create_file(secured.store_login, text.encode())
    for path, user, mechanism, module in (
        (secured.broker_properties, _BROKER, "PLAIN", _PLAIN),
        (secured.admin_properties, _ADMIN, "SCRAM-SHA-512", _SCRAM),
    ):
        if files.exists(path):
            continue
        login = f'{module} username="{user}" password="{random_password(entropy)}";'
        properties = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": login,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": secured.truststore,
        }
        create_file(path, encode_settings(properties))


def _read_password(files: Files, path: str) -> str:
    """Return the password of `sasl.jaas.config` in a properties file.

    Errors: BadSecuredFile if it has none.
    """
    found = _PASSWORD.search(_properties(files, path).get("sasl.jaas.config", ""))
    if found is None:
        raise BadSecuredFile(path)
    return found[1]


class BadSecuredFile(EngineError):
    """A properties file of a secured cluster has no password."""

    hint = "remove it: the next `kctl cluster start --secure` makes another"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: no password in sasl.jaas.config")
        self.path = path


def _properties(files: Files, path: str) -> Mapping[str, str]:
    return parse_properties(files.read_bytes(path), path)


# -- once the cluster runs


def complete_securing(
    data: DataDirectory, servers: str, running: Sequence[str], timeout_s: float
) -> None:
    """Create the administrator of a running cluster if it is missing, and store its context.

    `servers` are the addresses of all brokers, `running` those of running brokers. Returns once the
    administrator can log in at each running broker. Errors: those of a client.
    """
    files, secured = RealFiles(), secured_files(data)
    _protect_store(data, secured, timeout_s)
    password = _read_password(files, secured.admin_properties).encode()
    mechanism = ScramMechanism.SCRAM_SHA_512
    with _client_with_login(
        files, secured.broker_properties, ",".join(running), timeout_s
    ) as client:
        found = describe_credentials(client, [_ADMIN])[_ADMIN]
        if isinstance(found, EngineError) or mechanism not in found:
            alter_credentials(
                client, _ADMIN, (), [NewCredential(mechanism, ITERATIONS_MIN, password)]
            )
    deadline = time.monotonic() + timeout_s
    for address in running:
        _await_login(files, secured.admin_properties, address, deadline)
    _store_context(data, servers)


def _protect_store(data: DataDirectory, secured: SecuredFiles, timeout_s: float) -> None:
    """Restrict ZooKeeper's nodes to the brokers' login.

    Does nothing if the store is not running, or if the cluster has another login than `store.jaas`.
    """
    plan, running = data.plan(), data.running()
    if plan is None or running is None or running.znode_address is None:
        return
    settings = plan.settings
    is_own = settings.get(JAAS_FILE) == secured.store_login
    if is_own and settings.get("zookeeper.set.acl", "").strip().lower() == "true":
        protect_nodes(running.znode_address, settings, timeout_s)


def _client_with_login(files: Files, path: str, servers: str, timeout_s: float) -> KafkaClient:
    """Return a client of the brokers `servers` that logs in with the properties file `path`."""
    from engine.client.blocking import KafkaClient
    from kctl.connect import real_host

    host = real_host()
    return KafkaClient(
        parse_addresses(servers),
        streams=host.streams,
        clock=host.clock,
        entropy=host.entropy,
        settings=client_settings(_properties(files, path)),
        timeout_ms=round(timeout_s * 1000),
    )


def _await_login(files: Files, path: str, address: str, deadline: float) -> None:
    """Log in at a broker again and again until it accepts the new credential.

    A stored credential reaches each broker with a delay. Errors: those of the last login after
    `deadline`, in monotonic seconds.
    """
    while True:
        try:
            with _client_with_login(
                files, path, address, max(deadline - time.monotonic(), 1)
            ) as client:
                client.brokers_view()
                return
        except (AuthenticationFailed, Unreachable):
            if time.monotonic() > deadline:
                raise
        time.sleep(_LOGIN_PAUSE_S)


# -- the administrator's context


def context_name(data: DataDirectory) -> str:
    """Return the name under which `kctl` stores how to reach a secured cluster.

    It is `embedded` for the default directory, else the name of the directory.
    """
    if data.path == cluster_path(os.environ, None):
        return EMBEDDED
    return os.path.basename(data.path) or EMBEDDED


def check_context(data: DataDirectory) -> None:
    """Raise ContextTaken if the context of the cluster's name belongs to another cluster.

    It belongs to this one if it has its administrator's properties. Errors: also BadContextFile.
    """
    profiles = load_profiles(RealFiles(), profiles_path(os.environ))
    profile = profiles.by_name.get(context_name(data))
    if profile is not None and profile.command_config != secured_files(data).admin_properties:
        raise ContextTaken(context_name(data))


def _store_context(data: DataDirectory, servers: str) -> None:
    """Store the administrator's context, unless a context of that name has other credentials."""
    name, properties = context_name(data), secured_files(data).admin_properties

    def with_context(profiles: Profiles) -> Profiles | None:
        """Return the contexts with the new one, None if its name has other credentials."""
        before = profiles.by_name.get(name)
        if before is not None and before.command_config != properties:
            return None
        profile = before or Profile("", properties)
        changed = profiles.with_profile(name, profile._replace(bootstrap_servers=servers))
        return changed if changed.current else changed._replace(current=name)

    change_profiles(RealFiles(), profiles_path(os.environ), with_context)
    notify(f"context {name} is the administrator's: `kctl topics list --context {name}`")


def delete_secured_files(data: DataDirectory) -> None:
    """Delete the security files of a secured cluster, and its context.

    Missing files are passed over; a folder with other files in it is kept.
    """
    files, name, secured = RealFiles(), context_name(data), secured_files(data)

    def without(profiles: Profiles) -> Profiles | None:
        """Return the contexts without the cluster's, None if its name has other credentials."""
        profile = profiles.by_name.get(name)
        if profile is None or profile.command_config != secured.admin_properties:
            return None
        others = {key: value for key, value in profiles.by_name.items() if key != name}
        current = None if profiles.current == name else profiles.current
        return Profiles(current, others)

    change_profiles(files, profiles_path(os.environ), without)
    for path in secured.all_paths():
        if files.exists(path):
            files.remove(path)
    if files.exists(secured.folder) and not files.list_dir(secured.folder):
        files.remove(secured.folder)
