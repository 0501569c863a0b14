"""A stopped cluster's metadata store as a ZooKeeper server: `python -m … FILE`, until SIGTERM."""

from __future__ import annotations

import sys

from engine.cluster.cluster import MetadataStore
from engine.host.event_loop import EventLoop
from engine.host.real import RealClock, RealEntropy
from engine.host.real_network import RealNetwork


def main() -> None:
    """Print the port, then serve."""
    clock, loop = RealClock(), EventLoop()
    network = RealNetwork(loop, clock)
    store = MetadataStore(sys.argv[1], clock, loop)
    port = store.listen(network, "127.0.0.1", 0, RealEntropy())
    loop.handle_signals(loop.stop)
    print(port, flush=True)
    loop.run()
    network.close()
    store.close()
    loop.close()


if __name__ == "__main__":
    main()
