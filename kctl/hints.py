"""Hints for errors that have none themselves."""

from __future__ import annotations

from collections.abc import Iterable
from errno import EDQUOT, ENOSPC

from engine.errors import ApiError, EngineError

_RIGHTS = "the client's settings name the user; its ACLs must allow it"
_BY_CODE = {
    "OFFSET_OUT_OF_RANGE": "`kctl offsets get` shows where logs start and end",
    "UNKNOWN_TOPIC_OR_PARTITION": "`kctl topics list` shows what there is",
    "INVALID_TOPIC_EXCEPTION": "a name has up to 249 letters, digits, '.', '_' and '-'; '.' and "
    "'_' count as the same",
    "TOPIC_AUTHORIZATION_FAILED": _RIGHTS,
    "GROUP_AUTHORIZATION_FAILED": _RIGHTS,
    "CLUSTER_AUTHORIZATION_FAILED": _RIGHTS,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _RIGHTS,
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": _RIGHTS,
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "--command-config names a file with "
    "security.protocol=SASL_SSL and the sasl.* of a user (or SSL and ssl.keystore.location), and "
    "-b a listener that has it",
    "DELEGATION_TOKEN_AUTH_DISABLED": "set delegation.token.secret.key, the same on all brokers",
    "COORDINATOR_NOT_AVAILABLE": "its partition may have no leader: "
    "`kctl topics describe __consumer_offsets __transaction_state --unavailable`",
    "TOPIC_ALREADY_EXISTS": "`kctl topics describe` shows it; --if-not-exists takes it as it is",
    "MESSAGE_TOO_LARGE": "`kctl topics alter TOPIC -c max.message.bytes=BYTES` lets it take more",
    "RECORD_LIST_TOO_LARGE": "`kctl topics alter TOPIC -c segment.bytes=BYTES` lets it take more",
    "SECURITY_DISABLED": "brokers have no authorizer; authorizer.class.name names one",
    "REQUEST_TIMED_OUT": "it may still be done: check its state before asking again",
    "INVALID_REPLICATION_FACTOR": "`kctl brokers list` shows the brokers that are alive",
    "BROKER_NOT_AVAILABLE": "`kctl brokers list` shows the brokers that are alive",
    "INVALID_CONFIG": "`kctl topics configs TOPIC --all --doc` shows the values of each setting",
}
_FILES = "choose another path, or make this one readable and writable"
_FULL = "make room, or choose another path"


def hint_for(error: EngineError) -> str | None:
    """Return the hint to print below an error, None without one.

    It is the error's own hint, else that for its error code or its kind.
    """
    if error.hint:
        return error.hint
    if isinstance(error, ApiError):
        return _BY_CODE.get(error.name)
    from engine.host.ports import FileMissing, FileRefused, LogDirOffline

    if isinstance(error, LogDirOffline) and error.errno in (ENOSPC, EDQUOT):
        return _FULL
    return _FILES if isinstance(error, FileMissing | FileRefused | LogDirOffline) else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return "did you mean …?" with the candidate most similar to a mistyped word.

    None if no candidate is similar enough.
    """
    from difflib import get_close_matches

    alike = get_close_matches(word, list(candidates), n=1, cutoff=0.7)
    return f"did you mean {alike[0]}?" if alike else None
