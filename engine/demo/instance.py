"""The process of one instance: `python -m engine.demo.instance`, started by `instances`.

It gets the cluster and its task as one line of JSON, sends its counts as lines of JSON, and ends
when its standard input is closed.
"""

from __future__ import annotations

import json
import sys

from engine.client.blocking import KafkaClient
from engine.client.settings import client_settings, parse_addresses
from engine.demo.copying import CopyingInstance, CopyNames
from engine.errors import EngineError
from engine.host.child_process import ParentProcess
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from engine.json_text import JsonObject

_WAIT_MS = 200


def main() -> int:
    """Copy until the parent process closes the input; return the exit code."""
    parent = ParentProcess()
    request: JsonObject = json.loads(parent.read_message())

    def connect() -> KafkaClient:
        """Return a new client by the settings of the request."""
        return KafkaClient(
            parse_addresses(request["bootstrap_servers"]),
            streams=RealStreams(),
            clock=RealClock(),
            entropy=RealEntropy(),
            settings=client_settings(request["properties"]),
            timeout_ms=request["timeout_ms"],
        )

    try:
        names = CopyNames(**request["names"])
        instance = CopyingInstance(connect, names)
        while not parent.wants_an_end:
            instance.step(_WAIT_MS)
            parent.send(json.dumps(instance.counts._asdict()).encode())
        instance.close()
    except EngineError as error:
        parent.send(json.dumps({"error": str(error), "hint": error.hint}).encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
