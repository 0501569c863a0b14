"""Settings of every test: Hypothesis runs the same examples each time, Ctrl-C ends processes."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests.slow_tests import name_of, slow_tests

#: Objects made beyond those dropped before a collection; 700 to 2,000 by default.
_GARBAGE_THRESHOLD = 100_000

# By its entry point, too, wherever that is installed.
pytest_plugins = ["kctl.pytest_plugin"]

settings.register_profile(
    "ci",
    max_examples=50,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "wide", max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell has what it runs in the background ignore Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`."""
    parser.addoption("--quick", action="store_true", help="leave out what slow_tests.txt lists")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Group tests that share a fixture; leave out the slow tests with `--quick`."""
    for item in items:
        _share_fixtures(item)
    if not config.getoption("--quick"):
        return
    slow = slow_tests()
    left_out = [item for item in items if name_of(item.nodeid) in slow]
    items[:] = [item for item in items if name_of(item.nodeid) not in slow]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_groups_are_kept(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a pytest-xdist that drops groups: every process would make every shared fixture.

    It marks the groups by what pytest calls its own, which a release of pytest may rename.
    """
    if getattr(config.option, "loadgroup", False):
        for item in items:
            if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
                raise RuntimeError("this pytest-xdist groups no tests under this pytest")


def _share_fixtures(item: pytest.Item) -> None:
    """Run the tests with a fixture of their module in one process, which makes the fixture once.

    Without a group each process of the test run makes it again for its part of these tests.
    """
    if item.get_closest_marker("xdist_group") is not None:
        return
    definitions = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    if any(fixture[-1].scope == "module" for fixture in definitions):
        item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is there before the first test away from the collector.

    Half a million objects of modules and tests are never garbage: each full collection would walk
    them, those by tests that look for what is left and those by Python itself.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        # Tests make and drop many objects that live as long as one of them: seldom looked for, what
        # is garbage costs a sixth less time in all.
        gc.set_threshold(_GARBAGE_THRESHOLD, 20, 20)
