"""The message classes as attributes, for code that names the fields it uses:

    from engine.wire import messages

    request = messages.MetadataRequest(topics=None)

A class is created at its first use. `messages.pyi`, generated from the wire tables, declares the
fields for type checkers; an unknown message is an AttributeError.
"""

from __future__ import annotations

from engine.wire.errors import UnknownMessage
from engine.wire.structs import Message, message_class


def __getattr__(name: str) -> type[Message]:
    """Return the class of a message of the release that the engine implements.

    The class is made at its first use. Raises AttributeError for an unknown name.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        made = message_class(name)
    except UnknownMessage as error:
        raise AttributeError(name) from error
    globals()[name] = made
    return made
