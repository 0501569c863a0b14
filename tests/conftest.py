"""Settings of every test: Hypothesis runs the same examples each time, Ctrl-C ends processes."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.long_tests import group_of, long_tests
from tests.slow_tests import name_of, slow_tests

_ROOT = Path(__file__).parent.parent
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
    """Group tests; leave out the slow tests with `--quick`."""
    for item in items:
        _group(item)
    if not config.getoption("--quick"):
        return
    slow = slow_tests()
    left_out = [item for item in items if name_of(item.nodeid) in slow]
    items[:] = [item for item in items if name_of(item.nodeid) not in slow]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_groups_are_kept(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order groups, and refuse a pytest-xdist that drops them: all would make each shared fixture.

    It marks the groups by what pytest calls its own, which a release of pytest may rename.
    """
    if getattr(config.option, "loadgroup", False):
        for item in items:
            if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
                raise RuntimeError("this pytest-xdist groups no tests under this pytest")
        places = long_tests()
        last = len(places)
        items.sort(
            key=lambda item: places.get(
                group_of(item.nodeid) or "", places.get(name_of(item.nodeid), last)
            )
        )


def _group(item: pytest.Item) -> None:
    """Run the tests of a module in one process, but those that take long and share no fixture.

    1. Tests with a fixture of their module are run where it is made, once.
    2. Processes are given tests one group after the other. That costs nothing for a group, and as
       much as a quick test for one alone.
    """
    if item.get_closest_marker("xdist_group") is not None:
        return
    definitions = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    shares = any(fixture[-1].scope == "module" for fixture in definitions)
    if shares or name_of(item.nodeid) not in long_tests():
        item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep what is there before the first test away from the collector.

    Half a million objects of modules and tests are never garbage: each full collection would walk
    them, those by tests that look for what is left and those by Python itself.
    """
    gc.disable()
    try:
        _import_share(session.config)
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        # Tests make and drop many objects that live as long as one of them: seldom looked for, what
        # is garbage costs a sixth less time in all.
        gc.set_threshold(_GARBAGE_THRESHOLD, 20, 20)


def _import_share(config: pytest.Config) -> None:
    """Import a share of the modules in each process of a run, before all are collected in each.

    pytest compiles a module with its asserts rewritten, which takes most of a first collection, and
    keeps it: the other processes find it then.
    """
    process: dict[str, str] = getattr(config, "workerinput", {})
    if not process:
        return
    roots = [_ROOT / argument.partition("::")[0] for argument in config.args]
    paths = sorted({path for root in roots for path in root.rglob("test_*.py")})
    first, count = int(process["workerid"].removeprefix("gw")), int(process["workercount"])
    for path in paths[first::count]:
        name = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
        # The collection says what is wrong with a module.
        with suppress(Exception, pytest.skip.Exception):
            import_module(name)
            continue
        sys.modules.pop(name, None)
