"""The limit of file descriptors: it bounds connections where no setting does.

A new descriptor gets the lowest free number, so its number shows how many are in use: a connection
accepted at or above `connections_below` is refused, however many files are open.
"""

from __future__ import annotations

from engine.limits import FILE_DESCRIPTORS_KEPT

_UNKNOWN = 1 << 31


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open file descriptors to the hard one.

    Returns the limit in force afterwards; _UNKNOWN if there is none, or the system has no limits.
    """
    try:
        import resource
    except ImportError:
        return _UNKNOWN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # macOS reports a hard limit that it does not grant.
            return soft
    return _UNKNOWN if hard == resource.RLIM_INFINITY else hard


def descriptor_limit() -> int:
    """Return the limit of open file descriptors of this process, _UNKNOWN without one."""
    try:
        import resource
    except ImportError:
        return _UNKNOWN
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNKNOWN if soft == resource.RLIM_INFINITY else soft


def connections_below(limit: int) -> int:
    """Return the first descriptor number that no connection may have; higher ones are for files."""
    return limit - min(FILE_DESCRIPTORS_KEPT, limit // 4)
