"""A process that answers with what a message comes to: an expression, or statements to run."""

from __future__ import annotations

import os
import sys

from engine.host.side_process import FilesOfOwner, owner_pid, serve_owner

_NAMES = {"os": os, "sys": sys, "FilesOfOwner": FilesOfOwner, "owner_pid": owner_pid}


def answer_to(message: bytes) -> bytes:
    text = message.decode()
    if "\n" in text:
        exec(text, dict(_NAMES))
        return b""
    return str(eval(text, dict(_NAMES))).encode()


if __name__ == "__main__":
    serve_owner(answer_to)
