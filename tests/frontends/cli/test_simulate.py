from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.controller.running import Place
from tests.frontends.cli.conftest import CommandLine
from tests.simulate.test_history import journal, ran, seen, submitted
from workbench.frontends.cli import main
from workbench.frontends.cli.reports import comparison_lines
from workbench.frontends.cli.tables import WIDTH
from workbench.policies import DEFAULT_POLICY, POLICIES
from workbench.simulate.experiment import Result
from workbench.simulate.metrics import Record, Stint, report_on
from workbench.simulate.workload import Cluster, SimJob

TRACES = Path(__file__).parents[2] / "simulate" / "traces"
TIRESIAS = str(TRACES / "tiresias_60.csv")
VENUS = str(TRACES / "venus_vcvlY.csv")
PROMISED = {
    "mean_completion_s",
    "p50_s",
    "p95_s",
    "p99_s",
    "mean_wait_s",
    "longest_wait_s",
    "makespan_s",
    "utilisation",
    "preemptions",
    "lost_work_s",
    "jain",
    "events_per_s",
    "jobs",
}
POOL = ("--placement", "pool", "--fair-share", "off")


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str]) -> Simulate:
    return Simulate(capsys)


class Simulate:
    """Runs the verb in this process; no line may be wider than 80 columns."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = main(["simulate", *words])
        said = self._capsys.readouterr()
        if "--json" not in words:
            assert [line for line in said.out.splitlines() if len(line) > WIDTH] == []
        return code, said.out, said.err


def test_a_report_says_what_was_replayed_and_what_came_of_it(simulate: Simulate) -> None:
    code, out, err = simulate(TIRESIAS, "--cluster", "2x4", "--policy", "fifo-strict", *POOL)
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    assert "tiresias_60.csv: 60 jobs on 2x4 GPUs, placement pool, fair share off" in said
    assert "completion s 1,556.5 1,415.5 3,897.7 3,979.9" in said
    assert "fairness unknown: the trace names no users" in said


def test_the_last_line_of_json_is_one_object_with_every_figure(simulate: Simulate) -> None:
    code, out, _ = simulate(
        TIRESIAS, "--cluster", "2x4", "--policy", "fifo", "--restart-cost", "30", *POOL, "--json"
    )
    found = json.loads(out.splitlines()[-1])
    assert code == 0
    assert found.keys() >= PROMISED
    assert (found["jobs"], found["policy"], found["restart_cost_s"]) == (60, "fifo", 30.0)
    assert round(found["mean_completion_s"], 1) == 715.3


def test_defaults_are_the_default_policy_on_nodes_with_fair_share(simulate: Simulate) -> None:
    _, out, _ = simulate(TIRESIAS, "--cluster", "2x4", "--json")
    found = json.loads(out)
    assert (found["policy"], found["placement"]) == (DEFAULT_POLICY, "nodes")
    assert (found["fair_share"], found["restart_cost_s"]) == (True, 60.0)


def test_policies_are_compared_in_one_table(simulate: Simulate) -> None:
    words = (VENUS, "--cluster", "2x8", "--compare", "fifo-strict, las,default")
    code, out, _ = simulate(*words)
    rows = [line.split()[0] for line in out.splitlines() if line[:1].isalpha()]
    first = rows.index("policy")
    assert code == 0
    assert rows[first + 1 : first + 4] == ["fifo-strict", "las", DEFAULT_POLICY]
    _, out, _ = simulate(*words, "--json")
    compared = json.loads(out.splitlines()[-1])["policies"]
    assert [row["policy"] for row in compared] == ["fifo-strict", "las", DEFAULT_POLICY]
    assert all(row.keys() >= PROMISED for row in compared)


def test_columns_stay_apart_where_jobs_wait_for_months() -> None:
    stints = (Stint(start_s=9.9e6, end_s=9.95e6, gpus=("a",)),)
    job = SimJob(id="1", submit_s=0.0, service_s=5e4, gpus=1, user="ann")
    one = Record(
        job=job,
        first_start_s=9.9e6,
        end_s=9.95e6,
        stints=stints,
        lost_work_s=0.0,
        preemptions=99999,
    )
    report = report_on([one], Cluster.parse("1x1"), events=1, wall_s=1.0)
    result = Result(policy="fifo-strict", records=(one,), report=report)
    row = comparison_lines([result])[1]
    assert row.split() == [
        "fifo-strict",
        "9,950,000",
        "9,950,000",
        "9,950,000",
        "9,900,000",
        "9,900,000",
        "1",
        "99999",
        "1.00",
    ]
    assert len(row) <= WIDTH


def test_jobs_that_do_not_fit_are_left_out_and_said_to_be(simulate: Simulate) -> None:
    _, out, _ = simulate(TIRESIAS, "--cluster", "1x4")
    assert "! left out:" in out
    assert "asking for more than the cluster's 4 GPUs" in " ".join(out.split())
    _, out, _ = simulate(TIRESIAS, "--cluster", "1x4", "--json")
    found = json.loads(out)
    (left_out,) = found["left_out"]
    assert found["jobs"] + left_out["jobs"] == 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((TIRESIAS, "--cluster", "2x4", "--policy", "lifo"), "no policy is called 'lifo'"),
        ((TIRESIAS,), "does not say what it ran on"),
        ((TIRESIAS, "--cluster", "two"), "Write for example --cluster 20x8"),
        ((TIRESIAS, "--cluster", "2x4", "--restart-cost", "-1"), "--restart-cost -1 is not a time"),
        ((TIRESIAS, "--cluster", "2x4", "--restart-cost", "nan"), "--restart-cost nan is not"),
        ((TIRESIAS, "--cluster", "2x4", "--last", "soon"), "--last 'soon' is not a time"),
        (("gone.csv", "--cluster", "2x4"), "gone.csv cannot be read"),
        (
            (TIRESIAS, "--cluster", "2x4", "--compare", "fifo,las", "--plot", "x.html"),
            "--plot draws one policy",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_next_step(
    simulate: Simulate, words: tuple[str, ...], said: str
) -> None:
    code, out, err = simulate(*words)
    assert (code, out) == (1, "")
    assert said in err


def test_an_unknown_policy_is_answered_with_those_that_there_are(simulate: Simulate) -> None:
    _, _, err = simulate(TIRESIAS, "--cluster", "2x4", "--policy", "lifo")
    for name in POLICIES:
        assert name in err


def test_the_chart_is_written_where_it_was_asked_for(simulate: Simulate, tmp_path: Path) -> None:
    path = tmp_path / "chart.html"
    code, out, _ = simulate(TIRESIAS, "--cluster", "2x4", "--policy", "fifo", "--plot", str(path))
    assert (code, f"chart: {path}" in out) == (0, True)
    assert "tiresias_60.csv under fifo" in path.read_text(encoding="utf-8")


def test_bokeh_is_loaded_for_a_chart_alone(simulate: Simulate) -> None:
    loaded = {name for name in sys.modules if name.partition(".")[0] == "bokeh"}
    simulate(TIRESIAS, "--cluster", "2x4", "--policy", "fifo")
    assert {name for name in sys.modules if name.partition(".")[0] == "bokeh"} == loaded


async def test_a_labs_own_journal_is_replayed_on_the_gpus_that_it_saw(
    place: Place, workbench: CommandLine
) -> None:
    state = Path(place.env["XDG_STATE_HOME"]) / "gpu-workbench"
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    old = [*ran(0.0, "a", 1, 5.0), submitted(1.0, "b", gpus=0)]
    journal(state, seen(0), seen(1), *old, *ran(9e6, "c", 2, 7.0))
    found = (await workbench("simulate", "journal", "--json")).json()
    assert (found["jobs"], found["cluster"], found["jain"]) == (2, "1x2", 1.0)
    assert [user["user"] for user in found["users"]] == ["uid1001"]
    assert found["left_out"] == [{"reason": "asking for no GPU", "jobs": 1}]
    lately = (await workbench("simulate", "journal", "--last", "30d", "--json")).json()
    assert lately["jobs"] == 1


async def test_without_a_journal_it_is_said_where_one_would_be(workbench: CommandLine) -> None:
    said = await workbench("simulate", "journal")
    assert said.code == 1
    assert f"no journal yet: there is none at {workbench.place.env['XDG_STATE_HOME']}" in said.err
