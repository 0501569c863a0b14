"""How many descriptors this process may have: the bound on connections where no setting has one.

A new descriptor has the lowest free number, so its number says how many are in use: what is
accepted at or above `connections_below` is one too many, however many files are open.
"""

from __future__ import annotations

from engine.limits import FILE_DESCRIPTORS_KEPT

_UNKNOWN = 1 << 31


def raise_descriptor_limit() -> int:
    """Raise the limit to what the system allows at most; returns what holds now."""
    try:
        import resource
    except ImportError:
        return _UNKNOWN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # macOS names a hard limit that it does not grant.
            return soft
    return _UNKNOWN if hard == resource.RLIM_INFINITY else hard


def descriptor_limit() -> int:
    """Return how many descriptors this process may have."""
    try:
        import resource
    except ImportError:
        return _UNKNOWN
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNKNOWN if soft == resource.RLIM_INFINITY else soft


def connections_below(limit: int) -> int:
    """Return the first descriptor number that no connection may have: the rest is for files."""
    return limit - min(FILE_DESCRIPTORS_KEPT, limit // 4)
