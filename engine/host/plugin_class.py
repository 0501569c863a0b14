"""User-supplied Python classes that settings name.

| text | class |
|---|---|
| `package.module:Class` | of an importable module: installed, or on PYTHONPATH |
| `/path/to/file.py:Class` | of a file |
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from types import ModuleType

from engine.errors import ConfigError

_log = logging.getLogger("kafka.server.KafkaServer")


def load_plugin_class(key: str, text: str) -> type:
    """Return the class that a setting names as `module:Class` or `file.py:Class`.

    Its module is executed with the first call. Raises ConfigError.
    """
    source, colon, name = text.strip().rpartition(":")
    if not colon or not name.isidentifier():
        raise ConfigError(
            key,
            text,
            "must name a Python class as module:Class; classes of Java cannot be run here",
        )
    try:
        module = _import_file(source) if source.endswith(".py") else _import_by_name(source)
    except Exception as error:  # A module may fail in any way.
        _log.error("%s of %s cannot be loaded", source, key, exc_info=error)
        raise ConfigError(key, text, f"cannot be loaded: {error}") from error
    found = getattr(module, name, None)
    if not isinstance(found, type):
        raise ConfigError(key, text, f"has no class {name}")
    return found


def _import_by_name(name: str) -> ModuleType:
    """Import a module by its name, as `import` does."""
    return importlib.import_module(name)


def _import_file(path: str) -> ModuleType:
    """Import a file as a module, once per path; a failed import is retried by the next call."""
    # Brokers of one process share a module, as they share those that are imported by name.
    name = f"kctl_plugin:{path}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
