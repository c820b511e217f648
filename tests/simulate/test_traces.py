from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from workbench.core.model import PriorityClass
from workbench.simulate.errors import BadTrace
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import LeftOut, SimJob

TRACES = Path(__file__).parent / "traces"
HEAD = "job_id,submit_s,duration_s,gpus"


def swf(
    number: int,
    submit: str = "0",
    run: str = "60",
    allocated: str = "4",
    requested: str = "8",
    status: str = "1",
    user: str = "3",
    group: str = "2",
) -> str:
    """A line of 18 fields, padded as the archive's are."""
    wait = processor = memory = asked_s = asked_memory = program = queue = part = before = "-1"
    fields = [str(number), submit, wait, run, allocated, processor, memory, requested, asked_s]
    fields += [asked_memory, status, user, group, program, queue, part, before, "-1"]
    return "  ".join(field.rjust(5) for field in fields)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "jobs", "gpus"),
    [("tiresias_60", 60, 8), ("venus_vcvlY", 415, 16), ("venus_vcvGl", 1452, 144)],
)
def test_the_traces_of_these_tests_are_read(name: str, jobs: int, gpus: int) -> None:
    trace = read_trace(TRACES / f"{name}.csv")
    assert (trace.workload.name, len(trace.workload.jobs)) == (f"{name}.csv", jobs)
    assert max(job.gpus for job in trace.workload.jobs) == gpus
    assert (trace.left_out, trace.cluster) == ((), None)


def test_columns_may_come_in_any_order_with_others_between(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t",
        "gpus, user,duration_s,priority,job_id,submit_s,status,group",
        "4.0,bob,2.5,7, j1 ,1e3,COMPLETED,lab",
        "",
        "0,bob,1,7,j2,0,,",
    )
    trace = read_trace(path)
    assert trace.workload.jobs == (
        SimJob(
            id="j1",
            submit_s=1000.0,
            service_s=2.5,
            gpus=4,
            user="bob",
            group="lab",
            status="COMPLETED",
        ),
    )
    assert trace.left_out == (LeftOut(reason="asking for no GPU", jobs=1),)


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        ("a,x,1,1", "2 (submit_s)", "'x'"),
        ("a,-1,1,1", "2 (submit_s)", "'-1'"),
        ("a,0,nan,1", "3 (duration_s)", "'nan'"),
        ("a,0,inf,1", "3 (duration_s)", "'inf'"),
        ("a,0,,1", "3 (duration_s)", "''"),
        ("a,0,1,1.5", "4 (gpus)", "'1.5'"),
        ("a,0,1,1e30", "4 (gpus)", "'1e30'"),
        (",0,1,1", "1 (job_id)", "''"),
        ("a,0,1", "4", "'a,0,1'"),
        ("a,0,1,1,1", "5", "'a,0,1,1,1'"),
    ],
)
def test_a_bad_row_is_named_by_line_column_and_value(
    tmp_path: Path, row: str, column: str, value: str
) -> None:
    path = write(tmp_path / "bad.csv", HEAD, "ok,0,1,1", row)
    with pytest.raises(BadTrace) as caught:
        read_trace(path)
    assert f"{path}, line 3, column {column}: {value} is not" in caught.value.message
    assert caught.value.next_step


def test_a_class_is_read_and_an_empty_one_is_normal(tmp_path: Path) -> None:
    rows = ("a,0,1,1,high", "b,1,1,1,", "c,2,1,1,low", "d,3,1,1,normal")
    trace = read_trace(write(tmp_path / "t", f"{HEAD},class", *rows))
    assert [job.priority for job in trace.workload.jobs] == [
        PriorityClass.HIGH,
        PriorityClass.NORMAL,
        PriorityClass.LOW,
        PriorityClass.NORMAL,
    ]
    path = write(tmp_path / "bad.csv", f"{HEAD},class", "a,0,1,1,urgent")
    with pytest.raises(BadTrace) as caught:
        read_trace(path)
    assert caught.value.message == (
        f"{path}, line 2, column 5 (class): 'urgent' is not one of high, normal, low"
    )


def test_a_missing_column_and_a_foreign_file_say_what_a_trace_is(tmp_path: Path) -> None:
    for text in ("job_id,submit_s,gpus\n1,2,3\n", "", "hello\n", '{"a": 1}\n'):
        path = tmp_path / "t.csv"
        path.write_text(text)
        with pytest.raises(BadTrace, match=r"line 1: no column .*duration_s") as caught:
            read_trace(path)
        assert "job_id, submit_s, duration_s, gpus" in caught.value.next_step


def test_an_id_twice_names_the_trace(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match=r"t.csv has two jobs with the id '7'"):
        read_trace(write(tmp_path / "t.csv", HEAD, "7,0,1,1", "7,5,1,1"))


def test_the_standard_workload_format_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log.txt",
        "; Version: 2.2",
        ";",
        swf(1),
        swf(2, submit="10.5", run="0", requested="-1", status="5", user="-1", group="-1"),
        swf(3, status="0"),
    )
    trace = read_trace(path)
    assert trace.left_out == ()
    assert trace.workload.jobs == (
        SimJob(
            id="1",
            submit_s=0.0,
            service_s=60.0,
            gpus=8,
            user="user3",
            group="group2",
            status="completed",
        ),
        SimJob(
            id="3",
            submit_s=0.0,
            service_s=60.0,
            gpus=8,
            user="user3",
            group="group2",
            status="failed",
        ),
        SimJob(id="2", submit_s=10.5, service_s=0.0, gpus=4, status="cancelled"),
    )


def test_lines_that_cannot_be_replayed_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log.swf",
        swf(1),
        swf(1, status="2"),
        swf(1, submit="-1", status="3"),
        swf(2, run="-1"),
        swf(3, run="-1"),
        swf(4, requested="0", allocated="0"),
        swf(5, submit="-1"),
    )
    trace = read_trace(path)
    assert [job.id for job in trace.workload.jobs] == ["1"]
    assert {one.reason: one.jobs for one in trace.left_out} == {
        "being a part of a job that has a line of its own": 2,
        "with an unknown run time": 2,
        "asking for no processor": 1,
        "with an unknown submit time": 1,
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (swf(2) + " 1", "line 3, column 19"),
        (swf(2).rsplit(maxsplit=1)[0], "line 3, column 18"),
        (swf(2, run="soon"), "line 3, column 4 (run time): 'soon'"),
        (swf(2, run="-2"), "line 3, column 4 (run time): '-2'"),
        (swf(2, requested="1.5"), "line 3, column 8 (requested processors): '1.5'"),
    ],
)
def test_a_bad_line_of_the_standard_format_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = write(tmp_path / "log.swf", "; header", swf(1), line)
    with pytest.raises(BadTrace) as caught:
        read_trace(path)
    assert said in caught.value.message


def test_a_header_in_latin_1_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(b"; Installation: Universit\xe4t\n" + swf(1).encode() + b"\r\n")
    assert len(read_trace(path).workload.jobs) == 1


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv"])
def test_gzip_is_opened_whatever_the_file_is_called(tmp_path: Path, name: str) -> None:
    plain = TRACES / "tiresias_60.csv"
    path = tmp_path / name
    path.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_trace(path).workload.jobs == read_trace(plain).workload.jobs


def test_a_cut_or_damaged_gzip_file_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    whole = gzip.compress((TRACES / "venus_vcvlY.csv").read_bytes())
    for damaged in (whole[:400], whole[:400] + b"\0" * 40 + whole[440:]):
        path.write_bytes(damaged)
        with pytest.raises(BadTrace, match="damaged gzip"):
            read_trace(path)


def test_bytes_that_are_no_text_and_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"{HEAD},user\n".encode() + b"1,0,1,1,J\xfcrgen\n")
    with pytest.raises(BadTrace, match="not text in UTF-8"):
        read_trace(path)
    with pytest.raises(BadTrace, match="cannot be read: Is a directory"):
        read_trace(tmp_path)
    with pytest.raises(BadTrace, match="cannot be read: No such file"):
        read_trace(tmp_path / "gone.csv")


def test_a_byte_order_mark_is_not_part_of_the_first_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{HEAD}\n1,0,1,1\n", encoding="utf-8-sig")
    assert len(read_trace(path).workload.jobs) == 1
