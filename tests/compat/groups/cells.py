"""The cells of the matrix: a client, its assignor, and whether its members are static."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple

_RANGE, _ROUND_ROBIN, _STICKY, _COOPERATIVE = "range", "roundrobin", "sticky", "cooperative-sticky"
_JAVA = (_RANGE, _ROUND_ROBIN, _STICKY, _COOPERATIVE)

#: The assignors that each client has; static members are tried with the first and the last.
ASSIGNORS: Final = MappingProxyType(
    {
        "confluent": (_RANGE, _ROUND_ROBIN, _COOPERATIVE),
        "kafka-python": _JAVA,
        "aiokafka": (_RANGE, _ROUND_ROBIN, _STICKY),
        "java": _JAVA,
        "java-newer": _JAVA,
        "kafkajs": (_ROUND_ROBIN,),
        "franz-go": _JAVA,
        "sarama": (_RANGE, _ROUND_ROBIN, _STICKY),
    }
)
#: Clients whose processes take so much of a processor as they start that few start at once.
_FEW_AT_ONCE: Final = frozenset({"java", "java-newer"})
_FEW, _ALL = 2, 6
_WITHOUT_STATIC_MEMBERS: Final = frozenset({"kafkajs"})


class Cell(NamedTuple):
    """One group of the matrix."""

    client: str
    assignor: str
    is_static: bool

    @property
    def label(self) -> str:
        """Return its name, which a group's name begins with."""
        return f"{self.client}-{self.assignor}{'-static' if self.is_static else ''}"

    def arguments(self, bootstrap: str, group: str, name: str) -> list[str]:
        """Return the arguments of a member's program; its topic has the name of its group."""
        instance = [f"{group}-{name}"] if self.is_static else []
        return [bootstrap, group, group, self.assignor, name, *instance]


def cells_of(client: str) -> list[Cell]:
    """Return a client's cells."""
    assignors = ASSIGNORS[client]
    cells = [Cell(client, assignor, is_static=False) for assignor in assignors]
    if client not in _WITHOUT_STATIC_MEMBERS:
        cells += [Cell(client, name, is_static=True) for name in (assignors[0], assignors[-1])]
    return cells


def batches_of(client: str) -> list[list[Cell]]:
    """Return a client's cells, as many together as run at the same time."""
    cells, size = cells_of(client), _FEW if client in _FEW_AT_ONCE else _ALL
    return [cells[start : start + size] for start in range(0, len(cells), size)]
