"""`%gpu-timeline`: what it reads of a job, and what it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.frontends.server import scenes
from workbench.frontends.magics.timeline import read, shown
from workbench.protocol.job_files import ENDED, OUTPUT
from workbench.protocol.messages import JobView

START_S = scenes.NOW_S


class Markup:
    """A piece of HTML that is XML too: whatever is not closed or not escaped is an error."""

    def __init__(self, markup: str) -> None:
        elements = list(ET.fromstring(markup).iter())
        self.tags = {one.tag for one in elements}
        self.attributes = {name for one in elements for name in one.attrib}
        self.words = [one.text for one in elements if one.text]


def place(what: str, where: str, start_s: float, end_s: float) -> dict[str, Any]:
    times = {"start_unix_s": START_S + start_s, "end_unix_s": START_S + end_s}
    return {"kind": "place", "what": what, "where": where, **times}


def write(directory: Path, *lines: dict[str, Any]) -> None:
    (directory / OUTPUT).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A job's directory, named after the job that `ended()` gives."""
    made = tmp_path / f"{5:032x}"
    made.mkdir()
    return made


def ended(**rest: Any) -> JobView:
    fields: dict[str, Any] = {
        "name": "In[3]",
        "state": "ended",
        "outcome": "done",
        "gpus": [],
        "submitted_unix_s": START_S - 0.25,
        "started_unix_s": START_S,
        "ended_unix_s": START_S + 3,
    }
    return scenes.running(5, [], **{**fields, **rest})


def test_the_text_lists_parts_in_program_order_with_place_and_times(directory: Path) -> None:
    write(
        directory,
        place("line 10", "home", 2.5, 2.75),
        {"kind": "stream", "name": "stdout", "text": "not a place"},
        place("line 2, items 3 to 4", "worker-1", 0.5, 2.0),
        place("line 2, items 1 to 2", "worker-0", 0.5, 1.75),
    )
    assert shown(read(directory, ended())).text.splitlines() == [
        "job 00000000 (In[3]): done on 8 cores (CPU), waited 0.25 s, ran 3.00 s",
        "what                  where     at      for",
        "line 2, items 1 to 2  worker-0  0.50 s  1.25 s",
        "line 2, items 3 to 4  worker-1  0.50 s  1.50 s",
        "line 10               home      2.50 s  0.25 s",
    ]


def test_a_gpu_is_named_by_its_uuid_and_a_simulated_one_is_called_so(directory: Path) -> None:
    uuid = scenes.uuid(2)
    write(directory, place("line 2", uuid, 0, 1), place("line 3", "home", 1, 2))
    timeline = shown(read(directory, ended(gpus=[uuid])))
    assert f"line 2  {uuid[:12]}  0.00 s" in timeline.text
    assert uuid in timeline.markup
    simulated = shown(read(directory, ended(gpus=["SIM-0000"])))
    assert "SIMULATED" in simulated.text
    assert "SIMULATED" in simulated.markup


def test_the_picture_is_static_and_hides_nothing_from_who_sees_no_colours(
    directory: Path,
) -> None:
    write(
        directory,
        place("line 2", "worker-0", 0, 1),
        place("line 3", "worker-1", 0, 2),
        place("line 4", "worker-0", 1, 3),
    )
    markup = Markup(shown(read(directory, ended())).markup)
    assert not {"script", "style", "link", "img", "foreignobject"} & markup.tags
    assert not {name for name in markup.attributes if name.startswith(("on", "href", "src"))}
    assert [word for word in markup.words if word.startswith("line")].count("line 4") == 2
    assert {"line 4: 2.00 s", "worker-0", "worker-1"} <= set(markup.words)


def test_bars_lie_where_the_times_say(directory: Path) -> None:
    write(directory, place("line 2", "worker-0", 1, 2), place("line 3", "worker-1", 2, 4))
    markup = shown(read(directory, ended())).markup
    assert "<svg x='25.00%' width='25.00%'" in markup
    assert "<svg x='50.00%' width='50.00%'" in markup


@pytest.mark.parametrize(
    ("length_s", "marks"),
    [
        (0.0, ["0 s"]),
        (0.0004, ["0 s"]),
        (4.0, ["0 s", "1 s", "2 s", "3 s", "4 s"]),
        (0.9, ["0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s"]),
        (3000.0, ["0 s", "500 s", "1000 s", "1500 s", "2000 s", "2500 s", "3000 s"]),
    ],
)
def test_the_axis_has_round_times(directory: Path, length_s: float, marks: list[str]) -> None:
    write(directory, place("line 2", "home", 0, length_s))
    words = Markup(
        shown(read(directory, ended())).markup.partition("<details")[0] + "</figure>"
    ).words
    assert [word for word in words if re.fullmatch(r"[0-9.]+ s", word)] == marks


def test_text_of_the_user_is_never_markup(directory: Path) -> None:
    attack = "<script>alert('1')</script>\"'&"
    write(directory, place(f"line 2 {attack}", f"worker {attack}", 0, 1))
    timeline = shown(read(directory, ended(name=attack)))
    assert attack in timeline.text
    assert "<script" not in timeline.markup
    assert "script" not in Markup(timeline.markup).tags


def test_a_job_that_waits_says_so_instead_of_an_empty_picture(directory: Path) -> None:
    view = scenes.job(5, name="In[3]", reason="Needs 2 GPUs; 1 is free")
    assert shown(read(directory, view)).text.splitlines() == [
        "job 00000000 (In[3]): queued, Needs 2 GPUs; 1 is free",
        "no part of it has run to its end",
    ]


def test_a_job_that_runs_shows_what_has_ended(directory: Path) -> None:
    write(directory, place("line 2", "home", 0, 1))
    view = ended(state="running", outcome=None, ended_unix_s=None)
    text = shown(read(directory, view)).text
    assert text.startswith("job 00000000 (In[3]): running on 8 cores (CPU), waited 0.25 s\n")
    assert "line 2" in text


def test_a_job_that_the_controller_forgot_keeps_its_timeline(directory: Path) -> None:
    write(directory, place("line 2", "home", 0, 1))
    forgotten = "; the controller does not list it any more"
    unknown = shown(read(directory, None)).text
    assert unknown.startswith(f"job 00000000: how it ended is not known{forgotten}\n")
    (directory / ENDED).write_text('{"outcome": "failed", "detail": "ValueError"}')
    text = shown(read(directory, None)).text
    assert text.startswith(f"job 00000000: failed{forgotten}\n")
    assert "line 2  home   0.00 s  1.00 s" in text


def test_a_line_that_a_full_disk_tore_is_left_out(directory: Path) -> None:
    write(directory, place("line 2", "home", 0, 1))
    with (directory / OUTPUT).open("a") as file:
        file.write('{"kind": "place", "wh')
    assert shown(read(directory, ended())).text.count("line") == 1
