"""Judge from samples of offset and lag whether a group keeps up with a partition. Pure.

| verdict | when |
|---|---|
| REWIND | the committed offset went back |
| OK | the lag was 0 in a sample, or it fell once |
| STOP | the offset did not move, and no member has the partition |
| STALL | the offset did not move, and a member has the partition |
| WARN | the offset advanced, and the lag never fell and is larger than in the first sample |

The first rule that holds counts. Fewer than two samples with an offset are OK: nothing is known.

Source: Burrow's rules for the lag of consumers.
Differs: the time of a commit cannot be requested, so STOP depends on the members and not on missing
commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple


class LagVerdict(Enum):
    """Verdicts about a group's lag in a partition."""

    OK = "OK"
    WARN = "WARN"
    STOP = "STOP"
    STALL = "STALL"
    REWIND = "REWIND"


class LagSample(NamedTuple):
    """One sample of a group's committed offset and lag, and of the partition's end."""

    committed_offset: int
    end_offset: int

    @property
    def lag(self) -> int:
        """Return the number of records after the committed offset."""
        return max(self.end_offset - self.committed_offset, 0)


class JudgedLag(NamedTuple):
    """A verdict, and the reason in words."""

    verdict: LagVerdict
    reason: str


def judge_lag(samples: Sequence[LagSample], *, has_member: bool) -> JudgedLag:
    """Return the verdict on the lag of a group in one partition, from samples in order of time.

    It is REWIND, STALL, STOP, WARN or OK, with the reason as text. `has_member`: a member of the
    group has the partition; without one a constant lag is STOP, not STALL.
    """
    if len(samples) < 2:
        return JudgedLag(LagVerdict.OK, "fewer than two samples")
    first, last = samples[0], samples[-1]
    for before, after in pairwise(samples):
        if after.committed_offset < before.committed_offset:
            moved = f"{before.committed_offset} to {after.committed_offset}"
            return JudgedLag(LagVerdict.REWIND, f"the offset went back from {moved}")
    if any(sample.lag == 0 for sample in samples):
        return JudgedLag(LagVerdict.OK, "it had read everything")
    if any(after.lag < before.lag for before, after in pairwise(samples)):
        return JudgedLag(LagVerdict.OK, f"the lag fell in between; it is {last.lag}")
    if first.committed_offset == last.committed_offset:
        stays = f"the offset stays at {last.committed_offset} with a lag of {last.lag}"
        if has_member:
            return JudgedLag(LagVerdict.STALL, f"{stays}, though a member has the partition")
        return JudgedLag(LagVerdict.STOP, f"{stays}, and no member has the partition")
    if last.lag > first.lag:
        grew = f"the lag grew from {first.lag} to {last.lag}"
        return JudgedLag(LagVerdict.WARN, f"{grew} while the offset moved on")
    return JudgedLag(LagVerdict.OK, f"the lag stays at {last.lag} while the offset moves on")
