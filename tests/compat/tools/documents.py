"""Files that options name: mostly such as fit a stage, sometimes odd ones."""

# A document is easier to read in one line.
# ruff: noqa: E501

from __future__ import annotations

import json
from typing import Final

_CLIENT_FILES: Final = {
    "quick.properties": "default.api.timeout.ms=3000\nrequest.timeout.ms=2000\n",
    "named.properties": "client.id=drawn\ndefault.api.timeout.ms=3000\nrequest.timeout.ms=2000\n",
}
_ODD_CLIENT_FILES: Final = {
    "empty.properties": "",
    "bad.properties": "request.timeout.ms=x\n",
    "unknown.properties": "no.such.setting=1\ndefault.api.timeout.ms=3000\nrequest.timeout.ms=2000\n",
}
_CSV: Final = (
    "orders,0,1\norders,1,0\n",
    "orders,0,1\n",
    "readers,orders,0,2\nbilling,orders,1,1\n",
    "events-b,0,0\nevents-b,1,0\n",
)
_ODD_CSV: Final = (
    "",
    "orders,0\n",
    "orders,x,1\n",
    "orders,0,-5\n",
    "orders,0,99\n",
    "ghost,0,1\n",
    "a,b,c,d,e\n",
    "orders,0,1,\n",
    "orders,9,1\n",
    '"orders",0,1\n',
    "orders, 0 ,1\n",
    "\norders,0,1\n",
    "orders,0,x\n",
)


def _assignment(*rows: tuple[str, int, list[int]], **more: object) -> str:
    partitions = [{"topic": t, "partition": p, "replicas": r} for t, p, r in rows]
    return json.dumps({"version": 1, "partitions": partitions, **more})


_PLANS: Final = (
    _assignment(("orders", 0, [1])),
    _assignment(("orders", 0, [1]), ("orders", 1, [1])),
    _assignment(("solo", 0, [1])),
    '{"version":1,"partitions":[{"topic":"solo","partition":0,"replicas":[1],"log_dirs":["any"]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":0,"replicas":[1],"log_dirs":["{DATA}/d1"]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":0,"replicas":[1],"log_dirs":["{DATA}/d2"]}]}',
)
_ODD_PLANS: Final = (
    "",
    "{}",
    "[]",
    "x",
    '{"version":2}',
    '{"version":1}',
    '{"version":1,"partitions":[]}',
    '{"partitions":[]}',
    _assignment(("ghost", 0, [1])),
    _assignment(("orders", 9, [1])),
    _assignment(("orders", 0, [7])),
    _assignment(("orders", 0, [])),
    _assignment(("orders", 0, [1, 1])),
    _assignment(("orders", 0, [1, 2])),
    _assignment(("orders", 0, [1]), ("orders", 0, [1])),
    _assignment(("", 0, [1])),
    _assignment(("a b", 0, [1])),
    '{"version":1,"partitions":[{"topic":"solo","partition":0,"replicas":[1],"log_dirs":["/no/such"]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":0,"replicas":[1],"log_dirs":["relative"]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":0,"replicas":[1],"log_dirs":[]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":"0","replicas":[1]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":0,"replicas":["1"]}]}',
    '{"version":1,"partitions":[{"topic":"solo","replicas":[1]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":0}]}',
    '{"version":1,"partitions":[{"topic":null,"partition":0,"replicas":[1]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":-1,"replicas":[1]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":0.5,"replicas":[1]}]}',
    '{"version":1,"partitions":{"topic":"solo"}}',
    '{"version":1.0,"partitions":[]}',
    '{"version":null}',
    '{"version":1,"partitions":[1]}',
    '{"version":1,"partitions":[',
    "null",
    "{'version':1}",
    '{"version":1}trailing',
    '{"version":1,"extra":true,"partitions":[{"topic":"solo","partition":0,"replicas":[1],"more":[]}]}',
    '{"version":1,"partitions":[{"topic":"solo","partition":0,"replicas":[-1]}]}',
)
_MOVES: Final = (
    '{"version":1,"topics":[{"topic":"orders"}]}',
    '{"version":1,"topics":[{"topic":"orders"},{"topic":"solo"}]}',
)
_ODD_MOVES: Final = (
    "",
    "{}",
    "[]",
    '{"version":1,"topics":[]}',
    '{"version":1,"topics":[{"topic":"ghost"}]}',
    '{"version":3,"topics":[]}',
    '{"version":1,"topics":[{"topic":"orders"},{"topic":"orders"}]}',
    '{"version":1,"topics":[{}]}',
    '{"topics":[{"topic":"solo"}]}',
    '{"version":1,"topics":["orders"]}',
    '{"version":1,"topics":"orders"}',
    '{"version":1,"topics":[{"topic":1}]}',
    "x",
)
_OFFSETS: Final = (
    '{"partitions":[{"topic":"events_a","partition":0,"offset":1}],"version":1}',
    '{"partitions":[{"topic":"events_a","partition":0,"offset":-1},{"topic":"orders","partition":0,"offset":0}],"version":1}',
    '{"partitions":[{"topic":"events_a","partition":0,"offset":1}]}',
)
_ODD_OFFSETS: Final = (
    "",
    "{}",
    "[]",
    "x",
    '{"partitions":[]}',
    '{"partitions":[{"topic":"events_a","partition":0,"offset":99}]}',
    '{"partitions":[{"topic":"ghost","partition":0,"offset":1}]}',
    '{"partitions":[{"topic":"orders","partition":9,"offset":1}]}',
    '{"partitions":[{"topic":"orders","partition":0,"offset":-2}]}',
    '{"partitions":[{"topic":"orders","partition":0}]}',
    '{"partitions":[{"topic":"orders","partition":0,"offset":1},{"topic":"orders","partition":0,"offset":2}]}',
    '{"partitions":[{"topic":"orders","partition":"0","offset":1}]}',
    '{"partitions":[{"topic":"","partition":0,"offset":1}]}',
    '{"partitions":[{"topic":"orders","partition":0,"offset":"1"}]}',
    '{"version":2,"partitions":[]}',
    '{"version":"1","partitions":[]}',
    '{"partitions":[{"topic":"orders","offset":1}]}',
    '{"partitions":[{"partition":0,"offset":1}]}',
    '{"partitions":[1]}',
    "null",
    '{"partitions":[{"topic":"orders","partition":0,"offset":1.5}]}',
    '{"partitions":[{"topic":"orders","partition":0,"offset":null}]}',
)
_ELECTIONS: Final = (
    '{"partitions":[{"topic":"orders","partition":0}]}',
    '{"partitions":[{"topic":"orders","partition":0},{"topic":"solo","partition":0}]}',
)
_ODD_ELECTIONS: Final = (
    "",
    "{}",
    "[]",
    "x",
    '{"partitions":[]}',
    '{"partitions":[{"topic":"ghost","partition":0}]}',
    '{"partitions":[{"topic":"orders","partition":9}]}',
    '{"partitions":[{"topic":"orders","partition":0},{"topic":"orders","partition":0}]}',
    '{"partitions":[{"topic":"orders"}]}',
    '{"partitions":[{"topic":"orders","partition":"0"}]}',
    '{"partitions":["orders"]}',
    '{"partitions":{"topic":"orders"}}',
    "null",
    '{"partitions":[{"topic":1,"partition":0}]}',
    '{"partitions":[{"partition":0}]}',
)
_CONFIG_FILES: Final = (
    "retention.bytes=5000\nsegment.ms=7200000\n",
    "# c\nretention.ms = 5\n",
    "cleanup.policy=compact,delete\n",
)
_ODD_CONFIG_FILES: Final = (
    "",
    "retention.ms",
    "no.such=1\n",
    "=x\n",
    "retention.ms=x\n",
    "cleanup.policy=[compact,delete]\n",
)
#: Kinds whose value is the path of a file of such content.
FILES: Final = {
    "csv": (_CSV, _ODD_CSV),
    "plan": (_PLANS, _ODD_PLANS),
    "moves": (_MOVES, _ODD_MOVES),
    "offsets": (_OFFSETS, _ODD_OFFSETS),
    "election": (_ELECTIONS, _ODD_ELECTIONS),
    "config_file": (_CONFIG_FILES, _ODD_CONFIG_FILES),
    "client_file": (tuple(_CLIENT_FILES.values()), tuple(_ODD_CLIENT_FILES.values())),
}
MISSING: Final = "/no/such/file"
