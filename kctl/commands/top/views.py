"""The views of `kctl top`: columns, sort order, and the views that rows open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from engine.errors import EngineError
from engine.model import TopicPartition
from engine.watching.group_lags import VERDICTS
from engine.watching.partition_trouble import TROUBLES
from engine.watching.row_order import NoSuchSort, filter_rows, sort_rows
from engine.watching.watch import GONE, SILENT, SILENT_LEADER, Watch
from engine.watching.watch_rows import Frame
from kctl import exits
from kctl.render.columns import Column
from kctl.render.rows import OutputRow

if TYPE_CHECKING:

    class _Shown(Protocol):
        """A value whose fields are the cells of a row."""

        def _asdict(self) -> OutputRow: ...


_BYTES_PER_S = Column("bytes_per_s", "BYTES/S", right=True, is_size=True, kind="integer?")
_RECORDS_PER_S = Column("records_per_s", "REC/S", right=True, kind="number?")
_SIZE = Column("size_bytes", "SIZE", right=True, is_size=True, kind="integer?")
_TOPIC = Column("topic", "TOPIC", is_name=True)
_PARTITION = Column("partition", "P", right=True)
_LAG_S = Column("lag_s", "BEHIND-S", right=True, kind="number?")

BROKER_COLUMNS = (
    Column("broker_id", "ID", right=True, is_name=True),
    Column("state", "STATE"),
    Column("is_controller", "CTRL", kind="boolean"),
    Column("host", "HOST", wide=True),
    Column("rack", "RACK", wide=True, kind="string?"),
    Column("leader_count", "LEADS", right=True),
    Column("replica_count", "HOLDS", right=True),
    Column("out_of_sync_count", "BEHIND", right=True),
    _SIZE,
    Column("usable_bytes", "FREE", right=True, is_size=True, kind="integer?"),
    _BYTES_PER_S,
    _RECORDS_PER_S,
)
PARTITION_COLUMNS = (
    _TOPIC,
    _PARTITION,
    Column("trouble", "TROUBLE", kind="string?"),
    Column("leader", "LEADER", right=True),
    Column("replicas", "REPLICAS", kind="integer[]"),
    Column("isr", "ISR", kind="integer[]"),
    _SIZE,
    Column("log_start_offset", "START", right=True, wide=True, kind="integer?"),
    Column("end_offset", "END", right=True, wide=True, kind="integer?"),
    _BYTES_PER_S,
    _RECORDS_PER_S,
)
TOPIC_COLUMNS = (
    _TOPIC,
    Column("partition_count", "PARTS", right=True),
    Column("replication_factor", "RF", right=True),
    Column("trouble_count", "TROUBLE", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    _BYTES_PER_S,
    _RECORDS_PER_S,
)
GROUP_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("state", "STATE"),
    Column("member_count", "MEMBERS", right=True, kind="integer?"),
    Column("lag", "LAG", right=True),
    Column("lag_per_s", "LAG/S", right=True, kind="number?"),
    _LAG_S,
    Column("verdict", "VERDICT"),
    Column("reason", "REASON", wide=True),
)
MOVE_COLUMNS = (
    _TOPIC,
    _PARTITION,
    Column("original", "REPLICAS", kind="integer[]"),
    Column("target", "THEN", kind="integer[]"),
    Column("copied_bytes", "COPIED", right=True, is_size=True),
    Column("total_bytes", "OF", right=True, is_size=True, kind="integer?"),
    Column("bytes_per_s", "BYTES/S", right=True, is_size=True, kind="number?"),
    Column("left_s", "LEFT-S", right=True, kind="number?"),
)
LAG_COLUMNS = (
    _TOPIC,
    _PARTITION,
    Column("committed_offset", "COMMITTED", right=True, kind="integer?"),
    Column("end_offset", "END", right=True, kind="integer?"),
    Column("lag", "LAG", right=True, kind="integer?"),
    _LAG_S,
    Column("verdict", "VERDICT"),
    Column("client_id", "CLIENT", kind="string?"),
    Column("client_host", "HOST", wide=True, kind="string?"),
    Column("reason", "REASON", wide=True),
)
REPLICA_COLUMNS = (
    Column("broker_id", "BROKER", right=True, is_name=True),
    Column("state", "STATE"),
    Column("role", "ROLE"),
    Column("is_in_sync", "IN-SYNC", kind="boolean"),
    _SIZE,
    Column("offset_lag", "LAG", right=True, kind="integer?"),
    Column("path", "DIRECTORY", kind="string?"),
)


class View(NamedTuple):
    """A kind of rows: its columns, and its default sort order."""

    name: str
    columns: tuple[Column, ...]
    sort: str
    is_descending: bool

    def fields(self) -> list[str]:
        """Return the field names of the view's rows."""
        return [column.key for column in self.columns]


class Order(NamedTuple):
    """A sort order: field and direction."""

    key: str
    is_descending: bool


BROKERS: Final = View("brokers", BROKER_COLUMNS, "broker_id", False)
PARTITIONS: Final = View("partitions", PARTITION_COLUMNS, "trouble", False)
TOPICS: Final = View("topics", TOPIC_COLUMNS, "bytes_per_s", True)
GROUPS: Final = View("groups", GROUP_COLUMNS, "lag", True)
MOVES: Final = View("moves", MOVE_COLUMNS, "topic", False)
#: Views of the keys 1 to 5, and of a single frame.
VIEWS: Final = (BROKERS, PARTITIONS, TOPICS, GROUPS, MOVES)
_PARTITIONS_OF: Final = View("partitions of", PARTITION_COLUMNS, "partition", False)
_LED: Final = View("partitions led", PARTITION_COLUMNS, "bytes_per_s", True)
_LAGS: Final = View("lag of", LAG_COLUMNS, "lag", True)
_REPLICAS: Final = View("replicas of", REPLICA_COLUMNS, "broker_id", False)


#: Sort order of words by field, the worst first.
_RANKS: Final[Mapping[str, Sequence[str]]] = {
    "trouble": ("offline", SILENT_LEADER, *TROUBLES[1:]),
    "verdict": tuple(verdict.value for verdict in reversed(VERDICTS)),
    "state": (GONE, SILENT),
}


class NoSuchView(EngineError):
    """No view has this name."""

    exit_code = exits.USAGE

    def __init__(self, name: str) -> None:
        super().__init__(f"no view {name!r}: one of {', '.join(view.name for view in VIEWS)}")
        self.name = name


class Place(NamedTuple):
    """The rows to show: a view, restricted to a topic, partition, group or broker if given."""

    view: View
    title: str
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    broker_id: int | None = None


def view_named(name: str) -> View:
    """Return the view of VIEWS with this name; raises NoSuchView."""
    found = next((view for view in VIEWS if view.name == name), None)
    if found is None:
        raise NoSuchView(name)
    return found


def place_of(view: View) -> Place:
    """Return the place that shows all rows of a view."""
    return Place(view, "partitions in trouble" if view is PARTITIONS else view.name)


def place_opened_by(place: Place, row: OutputRow) -> Place:
    """Return the place that opens when a row of `place` is selected.

    A topic opens its partitions, a group its lag, a broker the partitions it leads, a partition its
    replicas.
    """
    view = place.view
    if view is TOPICS:
        return Place(_PARTITIONS_OF, f"partitions of {row['topic']}", topic=row["topic"])
    if view is GROUPS:
        return Place(_LAGS, f"lag of {row['group']}", group=row["group"])
    if view is BROKERS or view is _REPLICAS:
        broker_id = row["broker_id"]
        return Place(_LED, f"partitions that broker {broker_id} leads", broker_id=broker_id)
    topic, partition = row["topic"], row["partition"]
    return Place(_REPLICAS, f"replicas of {topic}-{partition}", topic, partition)


def rows_at(place: Place, frame: Frame, watch: Watch) -> list[OutputRow]:
    """Return all rows of a place; empty if its topic, group or broker no longer exists."""
    return [row._asdict() for row in _unsorted_values(place, frame, watch)]


def _unsorted_values(place: Place, frame: Frame, watch: Watch) -> Sequence[_Shown]:
    """Return the unsorted values that a place of `kctl top` shows, such as a topic's partitions."""
    view = place.view
    if view is PARTITIONS:
        return frame.troubled
    if view is _PARTITIONS_OF:
        return [row for row in frame.partitions if row.topic == place.topic]
    if view is _LED:
        return [row for row in frame.partitions if row.leader == place.broker_id]
    if view is _LAGS:
        return watch.lags_of(place.group or "")
    if view is _REPLICAS:
        return watch.replicas_of(TopicPartition(place.topic or "", place.partition or 0))
    whole: Sequence[_Shown] = getattr(frame, view.name)
    return whole


def filter_and_sort(
    view: View, rows: Sequence[OutputRow], filter_text: str = "", order: Order | None = None
) -> list[OutputRow]:
    """Return the rows that match the filter, sorted; raises NoSuchSort."""
    key, is_descending = order or Order(view.sort, view.is_descending)
    if key not in view.fields():
        raise NoSuchSort(key, view.fields())
    found = filter_rows(rows, filter_text, view.fields())
    rank = _RANKS.get(key, ())
    return [dict(row) for row in sort_rows(found, key, is_descending=is_descending, rank=rank)]


def sorts_descending(view: View, key: str) -> bool:
    """Return True if a view sorts by this field from high to low by default, as for amounts."""
    column = next(column for column in view.columns if column.key == key)
    is_number = column.right or column.is_size
    return is_number and key not in ("partition", "broker_id", "leader")
