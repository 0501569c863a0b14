"""Logins to ZooKeeper, and users of the embedded store: Java's settings for both.

| system property of Java | meaning |
|---|---|
| `java.security.auth.login.config` | the JAAS file |
| `zookeeper.sasl.clientconfig` | its section for the client; default: `Client` |
| `zookeeper.sasl.client` | `false` is refused beside such a section, as by Kafka |

```
Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="…"; };
Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="…"; };
```

They are read as settings of a broker, or from `-D…` of KAFKA_OPTS, where Kafka's scripts take them.
A client with such a section logs in, whether or not it protects nodes.

Source: JaasUtils.isZkSaslEnabled, ZooKeeperSaslClient, DigestLoginModule of ZooKeeper 3.8.
Differs: Krb5LoginModule (GSSAPI) is refused.
"""  # noqa: E501 - the lines of a file

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from engine.errors import ConfigError, EngineError
from engine.security.jaas import JaasEntry, JaasRefused, parse_jaas_sections

JAAS_FILE: Final = "java.security.auth.login.config"
_IS_ENABLED: Final = "zookeeper.sasl.client"
_SECTION: Final = "zookeeper.sasl.clientconfig"
#: All names that are read here.
LOGIN_KEYS: Final = (JAAS_FILE, _IS_ENABLED, _SECTION)
_CLIENT: Final = "Client"
_SERVER: Final = "Server"
_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_USER: Final = "user_"

ReadFile = Callable[[str], bytes]


class ZookeeperLogin(NamedTuple):
    """A client's name and password; the latter never shows in a repr."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"ZookeeperLogin({self.username})"


def system_properties(options: str) -> dict[str, str]:
    """Return the system properties in a JVM's options, `-Dname=value`, that configure a login.

    `options` is one text, as in KAFKA_OPTS.
    """
    try:
        words = shlex.split(options)
    except ValueError:
        # Kafka's scripts split the options at spaces; they do not interpret quotes.
        words = options.split()
    found = (word[2:].partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in found if name in LOGIN_KEYS}


def read_client_login(properties: Mapping[str, str], read: ReadFile) -> ZookeeperLogin | None:
    """Return the login of a ZooKeeper client, None if it needs none.

    Errors: ConfigError, also for an unreadable file.
    """
    section = properties.get(_SECTION) or _CLIENT
    entry = _read_jaas_entry(section, properties, read)
    if entry is None:
        return None
    enabled = properties.get(_IS_ENABLED, "true")
    if enabled.strip().lower() != "true":
        raise ConfigError(_IS_ENABLED, enabled, f"the JAAS file has a section {section}")
    username, password = entry.options.get("username"), entry.options.get("password")
    if username is None or password is None:
        rule = f"the section {section} needs username and password"
        raise ConfigError(JAAS_FILE, properties[JAAS_FILE], rule)
    return ZookeeperLogin(username, password)


def read_server_users(properties: Mapping[str, str], read: ReadFile) -> dict[str, str]:
    """Return the passwords of the server's users by name; empty without a `Server` section.

    Errors: ConfigError, for a file that cannot be read too.
    """
    entry = _read_jaas_entry(_SERVER, properties, read)
    if entry is None:
        return {}
    return {
        name.removeprefix(_USER): password
        for name, password in entry.options.items()
        if name.startswith(_USER)
    }


def _read_jaas_entry(
    section: str, properties: Mapping[str, str], read: ReadFile
) -> JaasEntry | None:
    """Return the first entry of a section of the JAAS file, None without file or section."""
    path = properties.get(JAAS_FILE)
    if not path:
        return None
    try:
        entries = parse_jaas_sections(read(path).decode()).get(section)
    except (JaasRefused, EngineError) as error:
        raise ConfigError(JAAS_FILE, path, str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(JAAS_FILE, path, "is not UTF-8") from error
    if not entries:
        return None
    if entries[0].login_module != _MODULE:
        raise ConfigError(JAAS_FILE, path, f"the section {section} must have {_MODULE}")
    return entries[0]
