"""`kctl sim run`: what it prints, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from engine.sim import campaign
from engine.sim.simulation import RunResult
from kctl.commands.sim import seeds as sim_work
from kctl.commands.sim.seeds import SimRequest
from kctl.schemas import schema_of
from tests.cli.shell import Shell
from tests.sim.mutants import MUTANTS

QUICK = SimRequest(0, 1, None, 1, 5.0, is_traced=False, is_shrunk=True, output="json")


def test_a_run_is_summed_up(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    words = ("sim", "run", "--seeds", "2", "--seconds", "3", "-o", "json")
    summary = json.loads(shell.ok(*words))
    Draft202012Validator(schema_of("sim run")).validate(summary)
    assert (2, 0, []) == (summary["seeds"], summary["failed"], summary["failures"])
    assert summary["acknowledged_records"] > 0


def test_a_trace_shows_what_happens_and_when(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("sim", "run", "--seed", "4", "--seconds", "3", "--trace")
    assert 0 == done.returncode
    assert "b1         is up, epoch" in done.stderr
    assert "the cluster stands" in done.stderr
    assert done.stdout.startswith("SEEDS")


@pytest.mark.slow
def test_seeds_run_in_several_processes(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    words = ("sim", "run", "--seeds", "3", "--seconds", "3", "-o", "json")
    alone, together = json.loads(shell.ok(*words)), json.loads(shell.ok(*words, "--jobs", "2"))
    assert alone | {"real_ms": 0} == together | {"real_ms": 0}


def test_no_seed_begins_behind_the_time(tmp_path: Path) -> None:
    words = ("sim", "run", "--seeds", "5000", "--minutes", "0.02", "--seconds", "3", "-o", "json")
    summary = json.loads(Shell(tmp_path).ok(*words))
    assert 1 <= summary["seeds"] < 5000


def test_an_interrupted_campaign_sums_up_the_seeds_that_ran(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = campaign.run_seed(0, duration_ms=3_000)

    def interrupted(*_arguments: object, **_named: object) -> Iterator[RunResult]:
        yield whole
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "run_seeds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sim_work.run_seeds(QUICK._replace(seed_count=9))
    summary = json.loads(capsys.readouterr().out)
    assert (1, 0) == (summary["seeds"], summary["failed"])
    assert whole.acknowledged_count == summary["acknowledged_records"]


def test_a_broken_rule_is_reported_with_its_faults_and_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mutant = next(each for each in MUTANTS if each.name == "the_leader_commits_alone")
    mutant.plant(monkeypatch)
    assert 4 == sim_work.run_seeds(QUICK)
    out, err = capsys.readouterr()
    summary = json.loads(out)
    Draft202012Validator(schema_of("sim run")).validate(summary)
    (failure,) = summary["failures"]
    assert (0, "R3") == (failure["seed"], failure["rule"])
    assert "kctl sim run --seed 0 --trace --seconds 5" == failure["replay"]
    assert "error: seed 0 at " in err
    assert "faults are enough" in err
    assert 4 == sim_work.run_seeds(QUICK._replace(output="table"))
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["1", "1"]
