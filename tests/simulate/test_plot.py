from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.simulate.reference import fifo
from workbench.simulate.errors import BadPlot
from workbench.simulate.metrics import Record, Stint
from workbench.simulate.plot import write_plot
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster, SimJob

TRACES = Path(__file__).parent / "traces"


def many(jobs: int, gpus: int) -> list[Record]:
    records = []
    for number in range(jobs):
        at = number // gpus * 10.0
        stint = Stint(start_s=at, end_s=at + 9.0, gpus=(f"gpu{number % gpus}",))
        job = SimJob(id=str(number), submit_s=at, service_s=9.0, gpus=1, user=f"user{number % 50}")
        records.append(Record(job=job, first_start_s=at, end_s=at + 9.0, stints=(stint,)))
    return records


def test_the_page_needs_nothing_from_elsewhere_and_names_jobs_users_and_gpus(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chart.html"
    records = fifo(read_trace(TRACES / "tiresias_60.csv").workload, Cluster.parse("2x4"))
    write_plot(path, records, title="tiresias under fifo", note="60 jobs")
    page = path.read_text(encoding="utf-8")
    assert "tiresias under fifo" in page
    assert "node01/gpu3" in page
    assert "60 jobs" in page
    assert re.findall(r"<(?:script|link)[^>]*(?:src|href)=", page) == []
    assert "more stints" not in page


def test_forty_thousand_jobs_make_a_page_of_a_few_megabytes_that_says_what_it_merged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chart.html"
    write_plot(path, many(40_000, 200), title="many", note="")
    assert "drawn as one bar" in path.read_text(encoding="utf-8")
    assert path.stat().st_size < 12e6


def test_a_name_cannot_become_markup(tmp_path: Path) -> None:
    path = tmp_path / "chart.html"
    evil = "</script><script>alert(1)</script>"
    stint = Stint(start_s=0.0, end_s=5.0, gpus=("a",))
    job = SimJob(id=evil, submit_s=0.0, service_s=5.0, gpus=1, user=evil)
    record = Record(job=job, first_start_s=0.0, end_s=5.0, stints=(stint,))
    write_plot(path, [record], title=evil, note="<i>note</i>")
    page = path.read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&amp;lt;i&amp;gt;note" in page  # escaped for the page, and once more where it is shown


def test_where_nothing_can_be_written_the_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPlot, match=r"gone/chart\.html: No such file"):
        write_plot(tmp_path / "gone" / "chart.html", many(1, 1), title="t", note="")
