"""What a simulated lease tells of itself is what the live sampler would tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench.core.decisions import Decision, Lower, Preempt, Raise, Warn
from workbench.core.events import Event, ProgressMade, UseFell, UseRose
from workbench.core.model import LeaseId
from workbench.core.settings import Settings
from workbench.policies import POLICIES
from workbench.simulate.errors import BadTrace
from workbench.simulate.measures import measures
from workbench.simulate.run import Run
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster, SimJob, Workload

LEASE = LeaseId("L0")


def job(id_: str = "1", submit_s: float = 0.0, service_s: float = 10_000.0, **more: Any) -> SimJob:
    return SimJob(id=id_, submit_s=submit_s, service_s=service_s, gpus=1, **more)


def told(one: SimJob, start_s: float = 0.0, begin_s: float = 0.0) -> list[Event]:
    return list(measures(one, LEASE, start_s, begin_s))


def spelled(events: list[Event]) -> list[tuple[str, int]]:
    return [(type(one).__name__, round(one.at)) for one in events]


def replay(*jobs: SimJob, policy: str = "fifo") -> tuple[list[Event], list[Decision]]:
    """What the core was told of leases, and all that it decided, on one GPU."""
    seen: list[Event] = []
    decided: list[Decision] = []

    class Watched(Run):
        def fold(self, event: Event) -> None:
            if isinstance(event, UseFell | UseRose | ProgressMade):
                seen.append(event)
            super().fold(event)

        def decide(self) -> list[Decision]:
            decisions = super().decide()
            decided.extend(decisions)
            return decisions

    settings = Settings(bound_s=None, ageing_s=None)
    run = Watched(Workload.of("w", jobs), POLICIES[policy](), settings, 60.0)
    run.open(Cluster.parse("1x1"), is_pool=True)
    run.play()
    assert len(run.records()) == len(jobs)
    return seen, decided


def test_a_job_that_says_nothing_tells_nothing() -> None:
    assert told(job()) == []


def test_use_falls_when_the_window_has_nearly_nothing_but_idleness_in_it() -> None:
    fell, rose = told(job(idle_from_s=1000.0, idle_for_s=2000.0))
    assert (fell.at, rose.at) == (pytest.approx(1285.0, abs=1.0), pytest.approx(3060.0, abs=1.0))
    assert isinstance(fell, UseFell)
    assert isinstance(rose, UseRose)
    assert fell.part < 0.05
    assert rose.part > 0.20


def test_a_short_pause_is_not_told() -> None:
    assert told(job(idle_from_s=1000.0, idle_for_s=280.0)) == []


def test_nothing_is_told_in_the_first_five_minutes_of_a_lease() -> None:
    assert spelled(told(job(idle_from_s=0.0, idle_for_s=20_000.0))) == [("UseFell", 300)]
    again = told(job(idle_from_s=0.0, idle_for_s=20_000.0), start_s=5000.0, begin_s=1000.0)
    assert spelled(again) == [("UseFell", 5300)]


def test_nothing_is_told_after_the_job_is_done() -> None:
    one = job(service_s=1200.0, idle_from_s=1000.0, idle_for_s=1000.0, reports_progress=True)
    assert max(event.at for event in told(one)) < 1200.0
    assert spelled(told(one))[-1] == ("ProgressMade", 1140)


def test_progress_is_told_at_most_once_a_minute_and_twenty_times() -> None:
    short = told(job(service_s=200.0, reports_progress=True))
    assert spelled(short) == [(("ProgressMade"), at) for at in (60, 120, 180)]
    assert [one.part for one in short if isinstance(one, ProgressMade)] == [0.3, 0.6, 0.9]
    assert len(told(job(reports_progress=True))) == 19


def test_a_restart_sets_progress_back() -> None:
    # 1,000 s were done; the restart takes 60 s, so the job is at 940 s when the lease begins.
    one = job(service_s=2000.0, reports_progress=True)
    first = told(one, start_s=5000.0, begin_s=4060.0)[0]
    assert isinstance(first, ProgressMade)
    assert first.at == pytest.approx(5060.0)
    assert first.part == pytest.approx(0.5)


def test_an_idle_job_is_warned_and_lowered_and_gives_way() -> None:
    seen, decided = replay(
        job("1", idle_from_s=1000.0, idle_for_s=5000.0), job("2", submit_s=1500.0, service_s=100.0)
    )
    moves = [(type(one).__name__, round(one.at)) for one in decided if not hasattr(one, "units")]
    assert moves[:3] == [("Warn", 1285), ("Lower", 1885), ("Preempt", 1885)]
    assert isinstance(seen[0], UseFell)


def test_a_job_that_is_used_again_is_raised() -> None:
    _, decided = replay(job("1", idle_from_s=1000.0, idle_for_s=2000.0))
    assert [type(one) for one in decided[1:]] == [Warn, Lower, Raise]
    assert decided[-1].at == pytest.approx(3360.0, abs=1.0)


def test_what_would_be_told_of_a_lease_that_was_given_back_is_not() -> None:
    seen, decided = replay(
        job("1", idle_from_s=1000.0, idle_for_s=5000.0, reports_progress=True),
        job("2", submit_s=1500.0, service_s=3000.0),
    )
    [preempt] = [one for one in decided if isinstance(one, Preempt)]
    assert all(one.at <= preempt.at for one in seen if one.lease == preempt.lease)
    parts = [one.part for one in seen if isinstance(one, ProgressMade)]
    assert len({one.lease for one in seen}) == 2
    assert parts == sorted(parts)


def test_a_trace_may_say_how_jobs_use_their_gpus(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "job_id,submit_s,duration_s,gpus,idle_from_s,idle_for_s,reports_progress\n"
        "a,0,60,1,10,20.5,true\n"
        "b,0,60,1,,,\n"
        "c,0,60,1,0,5,False\n"
    )
    jobs = read_trace(path).workload.jobs
    assert [(one.idle_from_s, one.idle_for_s, one.reports_progress) for one in jobs] == [
        (10.0, 20.5, True),
        (None, 0.0, False),
        (0.0, 5.0, False),
    ]


@pytest.mark.parametrize(
    ("cell", "rule"), [("x,1,true", "idle_from_s"), ("1,1,often", "true, false or empty")]
)
def test_a_cell_that_says_nothing_known_of_use_is_refused(
    tmp_path: Path, cell: str, rule: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "job_id,submit_s,duration_s,gpus,idle_from_s,idle_for_s,reports_progress\n"
        f"a,0,60,1,{cell}\n"
    )
    with pytest.raises(BadTrace, match=rule):
        read_trace(path)
