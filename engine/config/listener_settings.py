"""The settings of one listener: those with its prefix, else the broker's.

```
listener.name.<listener>.<key>                       this listener
listener.name.<listener>.<mechanism>.<key>           this listener, this mechanism
<key>                                                all listeners
```

Names of listeners and mechanisms are in lower case in these keys.

Source: KafkaConfig.valuesWithPrefixOverride, JaasContext.loadServerContext.
"""

from __future__ import annotations

from typing import Final

from engine.config.key import broker_keys
from engine.config.settings import BrokerSettings
from engine.config.value import ConfigValue, parse_value

#: The prefix of a key for one listener, before the listener's name.
LISTENER_PREFIX: Final = "listener.name."


class ListenerSettings:
    """The broker's settings as they apply to one listener."""

    def __init__(self, settings: BrokerSettings, listener: str) -> None:
        self._settings = settings
        self._prefix = f"{LISTENER_PREFIX}{listener.lower()}."

    def name_of(self, key: str, mechanism: str | None = None) -> str:
        """Return a key's name with the prefix of the listener, and mechanism if given."""
        mechanism_prefix = "" if mechanism is None else f"{mechanism.lower()}."
        return f"{self._prefix}{mechanism_prefix}{key}"

    def own_text(self, key: str, mechanism: str | None = None) -> str | None:
        """Return the text that is set with the listener's (and mechanism's) prefix, or None."""
        return self._settings.configured_text(self.name_of(key, mechanism))

    def text(self, key: str) -> str | None:
        """Return the text that is set for this listener, else the one for all listeners.

        None if neither is set.
        """
        own = self.own_text(key)
        return self._settings.configured_text(key) if own is None else own

    def value(self, key: str, mechanism: str | None = None) -> ConfigValue:
        """Return a key's value for this listener, and mechanism if given; raises ConfigError.

        Without a setting of the listener it is the broker's value, or the default.
        """
        own = None if mechanism is None else self.own_text(key, mechanism)
        if own is None:
            own = self.own_text(key)
        if own is None:
            return self._settings.value(key)
        return parse_value(broker_keys()[key], own)
