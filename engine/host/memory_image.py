"""The live and the durable image of an in-memory disk, and the changes between them.

```
file content    live  ──sync()──────▶  durable
name in a dir   live  ──sync_dir()──▶  durable
```

Reads return the live image, but for bits that the medium returns wrongly (`Content.flipped`).

Every change that is not durable is kept with the number of its operation. Together they form the
journal: a crash keeps any prefix of it, and may tear the write after the prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

#: Shares of the scattered writes that are lost, and that read as zeros.
_LOST_SHARE, _HOLLOW_SHARE = 0.4, 0.2


class Write(NamedTuple):
    """An unsynced change of content: bytes at a position, or a new size if `content` is None."""

    order: int
    position: int
    content: bytes | None

    def apply_to(self, image: bytearray) -> None:
        """Apply this write, or this new size, to the bytes of a file; gaps become zeros."""
        end = self.position + len(self.content or b"")
        if self.content is None:
            del image[end:]
        if len(image) < end:
            image.extend(bytes(end - len(image)))
        if self.content is not None:
            image[self.position : end] = self.content


class Content:
    """A file: the live bytes, the durable bytes, and the writes between them."""

    __slots__ = ("durable", "flipped", "live", "modified_ms", "unsynced")

    def __init__(self, durable: bytes = b"") -> None:
        """Create a file with durable bytes and no later writes."""
        #: Bits that reads return wrongly, by position, until the bytes there are written again.
        self.flipped: dict[int, int] = {}
        #: Bytes that reads return, bytes that a crash leaves, and the writes between both.
        self.live = bytearray(durable)
        self.durable = bytearray(durable)
        self.unsynced: list[Write] = []
        self.modified_ms = 0

    def apply_change(self, write: Write, now_ms: int) -> None:
        """Apply a change to the live image."""
        if self.flipped:
            self._forget_flipped(write)
        write.apply_to(self.live)
        self.unsynced.append(write)
        self.modified_ms = now_ms

    def _forget_flipped(self, write: Write) -> None:
        """Forget the flipped bits that a write replaces, or that a new size cuts off."""
        end = None if write.content is None else write.position + len(write.content)
        for position in list(self.flipped):
            if position >= write.position and (end is None or position < end):
                del self.flipped[position]

    def flip_bits(self, position: int, data: bytes) -> bytes:
        """Return `data`, which begins at `position`, as a medium with flipped bits reads it."""
        changed = bytearray(data)
        for at, bits in self.flipped.items():
            if position <= at < position + len(changed):
                changed[at - position] ^= bits
        return bytes(changed)

    def sync(self) -> None:
        """Apply every unsynced write to the durable image."""
        for write in self.unsynced:
            write.apply_to(self.durable)
        self.unsynced.clear()


class Folder:
    """A directory's two images, and the changes of names between them."""

    __slots__ = ("durable", "live", "unsynced")

    def __init__(self) -> None:
        """Create an empty folder."""
        #: Names that look-ups find, and names that a crash leaves.
        self.live: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        #: Changes of names that are not durable, by number of operation; a rename between two
        #: folders is in both.
        self.unsynced: dict[int, Renaming] = {}


Node: TypeAlias = Content | Folder


class NameChange(NamedTuple):
    """A directory entry that was set, or removed if `node` is None."""

    folder: Folder
    name: str
    node: Node | None

    def apply_to(self, entries: dict[str, Node]) -> None:
        """Apply this change to one image of the directory."""
        if self.node is None:
            entries.pop(self.name, None)
        else:
            entries[self.name] = self.node


class Renaming(NamedTuple):
    """The name changes of one operation, applied all or none."""

    order: int
    changes: tuple[NameChange, ...]

    def become_durable(self) -> None:
        """Apply every change of this operation to the durable images."""
        for change in self.changes:
            change.apply_to(change.folder.durable)


def list_files(root: Folder) -> list[Content]:
    """Return every file of the live image."""
    files = []
    folders = [root]
    while folders:
        for node in folders.pop().live.values():
            if isinstance(node, Folder):
                folders.append(node)
            else:
                files.append(node)
    return files


def flipped_paths(root: Folder, path: str = "") -> list[str]:
    """Return the paths of all files below `path` that have bits which are read wrongly."""
    paths = []
    for name, node in root.live.items():
        if isinstance(node, Folder):
            paths += flipped_paths(node, f"{path}/{name}")
        elif node.flipped:
            paths.append(f"{path}/{name}")
    return paths


def list_unsynced_changes(root: Folder, renamings: Sequence[Renaming]) -> list[Write | Renaming]:
    """Return every change that is not durable, in the order of the operations."""
    reachable = {id(content): content for content in list_files(root)}
    for renaming in renamings:
        for change in renaming.changes:
            # After a crash a removed or replaced file may reappear under its old name.
            for node in (change.node, change.folder.durable.get(change.name)):
                if isinstance(node, Content):
                    reachable[id(node)] = node
    changes: list[Write | Renaming] = list(renamings)
    for content in reachable.values():
        changes.extend(content.unsynced)
    return sorted(changes, key=lambda change: change.order)


def draw_kept_changes(
    root: Folder, changes: Sequence[Write | Renaming], draw: Random
) -> list[Write | Renaming]:
    """Return the changes kept by a disk that writes a file in any order, or only its size.

    All changes before a random one are kept. In the file that is written next, each write is kept,
    lost, or reads as zeros.
    """
    prefix = draw.randrange(len(changes) + 1)
    kept = list(changes[:prefix])
    rest = changes[prefix:]
    first = next((each for each in rest if isinstance(each, Write) and each.content), None)
    for content in list_files(root):
        if first is None or first not in content.unsynced:
            continue
        for write in content.unsynced[content.unsynced.index(first) :]:
            if write.content is None:
                break
            fate = draw.random()
            if fate < _HOLLOW_SHARE:
                kept.append(write._replace(content=bytes(len(write.content))))
            elif fate > _HOLLOW_SHARE + _LOST_SHARE:
                kept.append(write)
    return kept


def build_crash_image(root: Folder, kept: Iterable[Write | Renaming]) -> Folder:
    """Return the directory tree after a crash: the durable tree with the kept changes applied.

    A torn write is a Write with the first part of its content.
    """
    names: dict[int, dict[str, Node]] = {}
    writes: dict[int, Write] = {}
    for change in kept:
        if isinstance(change, Write):
            writes[change.order] = change
            continue
        for name_change in change.changes:
            entries = names.setdefault(id(name_change.folder), dict(name_change.folder.durable))
            name_change.apply_to(entries)
    copies: dict[int, Node] = {}

    def content_of(node: Content) -> Content:
        """Return the file after the crash: durable bytes with the writes that were kept."""
        image = bytearray(node.durable)
        for write in node.unsynced:
            arrived = writes.get(write.order)
            if arrived is not None:
                arrived.apply_to(image)
        content = Content(bytes(image))
        content.modified_ms = node.modified_ms
        content.flipped = {at: bits for at, bits in node.flipped.items() if at < len(image)}
        return content

    def copy_of(node: Node) -> Node:
        """Return the copy of a file or folder after the crash, the same one at each call."""
        if id(node) not in copies:
            copies[id(node)] = content_of(node) if isinstance(node, Content) else folder_of(node)
        return copies[id(node)]

    def folder_of(node: Folder) -> Folder:
        """Return a folder's copy after the crash, with copies of its content."""
        folder = Folder()
        entries = names.get(id(node), node.durable)
        folder.live = {name: copy_of(child) for name, child in entries.items()}
        folder.durable = dict(folder.live)
        return folder

    return folder_of(root)
