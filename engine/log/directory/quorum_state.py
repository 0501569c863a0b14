"""`quorum-state`: a KRaft node's view of the controllers' election.

```
version 0  {"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,
            "currentVoters":[{"voterId":1}],"data_version":0}
version 1  {"leaderId":1,"leaderEpoch":1,"votedId":-1,
            "votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
```

Source: Kafka's FileQuorumStateStore and QuorumStateData; KIP-853 (version 1).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from engine.errors import CorruptFile

#: The file's name in the directory of __cluster_metadata-0.
FILE_NAME = "quorum-state"

_VERSION_MAX = 1
_NUMBERS = ("leaderId", "leaderEpoch", "votedId")


class QuorumState(NamedTuple):
    """The election's state; −1 means none. `voter_ids` only in version 0."""

    leader_id: int
    leader_epoch: int
    voted_id: int
    version: int
    voted_directory_id: str | None = None
    voter_ids: tuple[int, ...] = ()
    cluster_id: str = ""
    applied_offset: int = 0


def parse_quorum_state(content: bytes, path: str) -> QuorumState:
    """Return the KRaft election state in the content of a quorum-state file; raises CorruptFile."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(path, "a JSON object", repr(bytes(content[:100]))) from error
    if not isinstance(document, dict):
        raise CorruptFile(path, "a JSON object", type(document).__name__)
    version = _number_field(document, "data_version", path)
    if not 0 <= version <= _VERSION_MAX:
        raise CorruptFile(path, f"data_version up to {_VERSION_MAX}", version)
    leader_id, leader_epoch, voted_id = (_number_field(document, key, path) for key in _NUMBERS)
    if version:
        directory = _text_field(document, "votedDirectoryId", path)
        return QuorumState(leader_id, leader_epoch, voted_id, version, directory)
    voters = document.get("currentVoters") or []
    if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
        raise CorruptFile(path, "a list of voters", repr(voters)[:100])
    return QuorumState(
        leader_id,
        leader_epoch,
        voted_id,
        version,
        voter_ids=tuple(_number_field(voter, "voterId", path) for voter in voters),
        cluster_id=_text_field(document, "clusterId", path),
        applied_offset=_number_field(document, "appliedOffset", path),
    )


def encode_quorum_state(state: QuorumState) -> bytes:
    """Return the content of a quorum-state file, as JSON with the fields of the state's version."""
    fields: dict[str, object] = {} if state.version else {"clusterId": state.cluster_id}
    fields |= {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
    }
    if state.version:
        fields["votedDirectoryId"] = state.voted_directory_id
    else:
        fields["appliedOffset"] = state.applied_offset
        fields["currentVoters"] = [{"voterId": voter_id} for voter_id in state.voter_ids]
    fields["data_version"] = state.version
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def _number_field(document: dict[str, object], key: str, path: str) -> int:
    """Return a number of the JSON document; raise CorruptFile if absent or another type."""
    value = document.get(key)
    if type(value) is not int:
        raise CorruptFile(path, f"a number for {key}", repr(value)[:100])
    return value


def _text_field(document: dict[str, object], key: str, path: str) -> str:
    """Return a text of the JSON document; raise CorruptFile if absent or another type."""
    value = document.get(key)
    if not isinstance(value, str):
        raise CorruptFile(path, f"a text for {key}", repr(value)[:100])
    return value
