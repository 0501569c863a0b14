"""Selection of the cluster that a command connects to: contexts, and their precedence.

| first that exists | address of the cluster | client properties |
|---|---|---|
| `-b` | its addresses | `--command-config`, else that of `--context` |
| `--context` | its addresses | `--command-config`, else its own |
| `bootstrap.servers` of `--command-config` | its addresses | that file |
| `KCTL_BOOTSTRAP_SERVER` | its addresses | `--command-config` |
| `KCTL_CONTEXT` | that context's | `--command-config`, else its own |
| the current context | its addresses | `--command-config`, else its own |
| the embedded cluster, if it runs | its addresses | `--command-config`, else its administrator's |

The name `embedded` means the embedded cluster, unless a context has it.

The order is: options, the file, environment variables, stored contexts. `-v` prints the source of
the choice.

Addresses given by options or variables are never combined with the credentials of the current
context: a password must not be sent to another host. The same applies to addresses in a file: its
password is sent only to its own hosts, unless an option of the same command names others.

The file, `$XDG_CONFIG_HOME/kctl/config.yaml` (or the path in `KCTL_CONFIG`):

```
current: <name>
contexts:
  <name>:
    bootstrap_servers: <host:port,…>
    command_config: <path of a Kafka client.properties>    (optional)
    protected: true        (optional: changes need the context's name)
    read_only: true        (optional: changes are refused)
    cluster_id: <id>       (optional: learnt at the first use, then checked on each)
```

Secrets stay in the properties file. `guard` enforces the last three fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError
from kctl import exits
from kctl.embedded import EMBEDDED, running_properties, running_servers

if TYPE_CHECKING:
    from engine.host.ports import Files

_FILE = "kctl/config.yaml"
_PROTECTED, _READ_ONLY = "protected", "read_only"


class NoCluster(EngineError):
    """No option, variable or context selects a cluster, and the embedded one does not run."""

    exit_code = exits.USAGE
    hint = (
        "start one: kctl cluster start; or give -b HOST:PORT, set KCTL_BOOTSTRAP_SERVER, "
        "or keep one: kctl context set NAME -b HOST:PORT; "
        "`kctl cluster status --data DIR` shows where one with a directory of its own listens"
    )

    def __init__(self) -> None:
        super().__init__(
            "which cluster? There is no -b, no --context, no bootstrap.servers in a "
            "--command-config, no current context, and the embedded cluster does not run"
        )


class NoSuchContext(EngineError):
    """No stored context has this name."""

    exit_code = exits.USAGE
    hint = "`kctl context list` shows them, `kctl context set NAME -b HOST:PORT` makes one"

    def __init__(self, name: str, names: list[str]) -> None:
        super().__init__(f"no context {name!r}; known: {', '.join(names) or 'none'}")
        self.name = name


class BadContextFile(EngineError):
    """The file of contexts is malformed."""

    hint = "correct it by hand, or remove it and make the contexts again"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Profile(NamedTuple):
    """A context: a cluster's addresses, its properties file, its guards.

    A `cluster_id` of None is not known yet.
    """

    bootstrap_servers: str
    command_config: str | None = None
    is_protected: bool = False
    is_read_only: bool = False
    cluster_id: str | None = None

    @property
    def is_guarded(self) -> bool:
        """Return True for a protected or read-only context.

        Commands that change its cluster then need its name typed, or are refused.
        """
        return self.is_protected or self.is_read_only


class Profiles(NamedTuple):
    """The stored contexts, and the name of the current one, or None."""

    current: str | None
    by_name: dict[str, Profile]

    def get(self, name: str) -> Profile:
        """Return the context with this name; raises NoSuchContext."""
        if name not in self.by_name:
            raise NoSuchContext(name, sorted(self.by_name))
        return self.by_name[name]

    def with_profile(self, name: str, profile: Profile) -> Profiles:
        """Return the contexts with one added or replaced."""
        return self._replace(by_name={**self.by_name, name: profile})


class Choice(NamedTuple):
    """The cluster to connect to; `source` names what selected it.

    `context` is the context that was named or is current, None if none is used; `cluster_id` is its
    required cluster id, None if unknown. The addresses are the context's unless `-b` was given.
    """

    bootstrap_servers: str
    command_config: str | None
    source: str
    context: str | None = None
    cluster_id: str | None = None


def profiles_path(environment: Mapping[str, str]) -> str:
    """Return the path of the contexts file: KCTL_CONFIG, else kctl/config.yaml.

    That is in XDG_CONFIG_HOME, or ~/.config.
    """
    if environment.get("KCTL_CONFIG"):
        return environment["KCTL_CONFIG"]
    home = environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config"
    return f"{home}/{_FILE}"


def load_profiles(files: Files, path: str) -> Profiles:
    """Read the contexts file, without contexts if it does not exist; raises BadContextFile."""
    if not files.exists(path):
        return Profiles(None, {})
    import yaml

    try:
        document = yaml.safe_load(files.read_bytes(path)) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadContextFile(path, f"not YAML: {error}") from error
    contexts = document.get("contexts") or {} if isinstance(document, dict) else None
    if not isinstance(contexts, dict):
        raise BadContextFile(path, "expected a mapping with `current` and `contexts`")
    current = document.get("current")
    by_name = {str(name): _parse_profile(path, name, fields) for name, fields in contexts.items()}
    return Profiles(None if current is None else str(current), by_name)


def _parse_profile(path: str, name: object, fields: object) -> Profile:
    """Parse one context of the file; raises BadContextFile for missing or invalid fields.

    `path` and `name` are for that error.
    """
    if not isinstance(fields, dict) or not isinstance(fields.get("bootstrap_servers"), str):
        raise BadContextFile(path, f"context {name} has no `bootstrap_servers`")
    is_protected, is_read_only = (fields.get(key, False) for key in (_PROTECTED, _READ_ONLY))
    if not (isinstance(is_protected, bool) and isinstance(is_read_only, bool)):
        raise BadContextFile(
            path, f"context {name}: {_PROTECTED} and {_READ_ONLY} are true or false"
        )
    command_config, cluster_id = fields.get("command_config"), fields.get("cluster_id")
    return Profile(
        fields["bootstrap_servers"],
        None if command_config is None else str(command_config),
        is_protected,
        is_read_only,
        None if cluster_id is None else str(cluster_id),
    )


def save_profiles(files: Files, path: str, profiles: Profiles) -> None:
    """Replace the contexts file with these contexts, sorted by name.

    Call it only under the file's lock, as `change_profiles` does.
    """
    import yaml

    contexts = {
        name: _fields_to_store(profile) for name, profile in sorted(profiles.by_name.items())
    }
    text = yaml.safe_dump({"current": profiles.current, "contexts": contexts}, sort_keys=False)
    files.replace_file(path, text.encode())


def _fields_to_store(profile: Profile) -> dict[str, str | bool]:
    """Return the fields of a context for the file; None and False are left out."""
    fields = {
        "bootstrap_servers": profile.bootstrap_servers,
        "command_config": profile.command_config,
        _PROTECTED: profile.is_protected or None,
        _READ_ONLY: profile.is_read_only or None,
        "cluster_id": profile.cluster_id,
    }
    return {key: value for key, value in fields.items() if value is not None}


def change_profiles(
    files: Files, path: str, change: Callable[[Profiles], Profiles | None]
) -> Profiles:
    """Change the contexts file under its lock; return the contexts that are stored afterwards.

    `change` gets the stored contexts, and returns None to keep them. Errors: those of `change`,
    BadContextFile, StorageError.
    """
    from engine.host.lock_file import lock_file

    files.make_dir(path.rpartition("/")[0] or ".")
    release = lock_file(f"{path}.lock", waits=True)
    try:
        profiles = load_profiles(files, path)
        changed = change(profiles)
        if changed is None or changed == profiles:
            return profiles
        save_profiles(files, path, changed)
        return changed
    finally:
        release()


def servers_in(files: Files, path: str) -> str | None:
    """Return `bootstrap.servers` of a client properties file, None if absent or blank."""
    from kctl.properties_file import read_properties

    return read_properties(files, path).get("bootstrap.servers", "").strip() or None


def choose(
    environment: Mapping[str, str],
    files: Files,
    *,
    bootstrap_server: str | None = None,
    context: str | None = None,
    command_config: str | None = None,
) -> Choice:
    """Select the cluster to connect to, by the order in the table of this module.

    Raises NoCluster, NoSuchContext, BadContextFile.

    The contexts file is read only if a context is needed, `command_config` only if no option
    selects the cluster; its errors are those of `servers_in`.
    """
    path = profiles_path(environment)
    if bootstrap_server is not None:
        if not context:
            return Choice(bootstrap_server, command_config, "-b")
        named = load_profiles(files, path).get(context)
        properties = command_config or named.command_config
        return Choice(bootstrap_server, properties, "-b", context, named.cluster_id)
    if context is None:
        servers = servers_in(files, command_config) if command_config else None
        if servers:
            return Choice(servers, command_config, f"bootstrap.servers in {command_config}")
        servers = environment.get("KCTL_BOOTSTRAP_SERVER")
        if servers:
            return Choice(servers, command_config, "KCTL_BOOTSTRAP_SERVER")
    profiles = load_profiles(files, path)
    name, source = context, "--context"
    if name is None:
        name, source = environment.get("KCTL_CONTEXT") or None, "KCTL_CONTEXT"
    if name is None:
        name, source = profiles.current, "current context"
    if name is None or (name == EMBEDDED and name not in profiles.by_name):
        servers = running_servers(environment)
        if servers is None:
            raise NoCluster
        properties = command_config or running_properties(environment)
        return Choice(servers, properties, "embedded cluster")
    profile = profiles.get(name)
    return Choice(
        profile.bootstrap_servers,
        command_config or profile.command_config,
        f"{source} {name}",
        name,
        profile.cluster_id,
    )
