from __future__ import annotations

import xml.etree.ElementTree as ET

from workbench.simulate.experiment import try_policy
from workbench.simulate.gantt import Gantt, gantt, zoomable
from workbench.simulate.metrics import Record, Stint
from workbench.simulate.workload import Cluster, SimJob, Workload

SVG = "{http://www.w3.org/2000/svg}"


def record(job: str, user: str, start_s: float, end_s: float, *gpus: str) -> Record:
    return Record(
        job=SimJob(id=job, user=user, submit_s=0.0, service_s=end_s - start_s, gpus=len(gpus)),
        first_start_s=start_s,
        end_s=end_s,
        stints=(Stint(start_s=start_s, end_s=end_s, gpus=gpus),),
    )


DAY = Gantt(
    title="a day",
    records=(
        record("both", "bob", 0.0, 3_600.0, "gpu0", "gpu1"),
        record("one", "amy", 3_600.0, 7_200.0, "gpu1"),
    ),
)


def test_the_text_says_who_holds_each_device_and_how_many_gpus_each_user_holds() -> None:
    half = 36
    assert repr(DAY).splitlines() == [
        "SIMULATED: a day",
        "         0 to 2 h; who holds a device, and how many GPUs a user holds",
        "gpu0     " + "B" * half + "." * half,
        "gpu1     " + "B" * half + "A" * half,
        "amy (A)  " + "." * half + "1" * half,
        "bob (B)  " + "2" * half + "." * half,
    ]


def test_users_whose_initials_do_not_tell_them_apart_get_other_letters() -> None:
    two = (record("a", "bob", 0.0, 20.0, "gpu0"), record("b", "ben", 0.0, 10.0, "gpu1"))
    text = repr(Gantt(title="", records=two))
    assert "bob (A)" in text
    assert "ben (B)" in text


def test_the_picture_has_a_bar_for_each_job_by_user_and_for_each_device_it_held() -> None:
    root = ET.fromstring(DAY._repr_svg_())
    said = [title.text for title in root.iter(f"{SVG}title")]
    assert said == [
        "one of amy: 1 (gpu1), waited 3,600 s",
        "both of bob: 2 (gpu0, gpu1), waited 0 s",
        "both of bob: 2 (gpu0, gpu1), waited 0 s",
        "both of bob: 2 (gpu0, gpu1), waited 0 s",
        "one of amy: 1 (gpu1), waited 3,600 s",
    ]
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert "SIMULATED: a day" in words
    assert {"amy", "bob", "gpu0", "gpu1", "by user", "by device", "2 h"} <= set(words)
    fills = {rect.get("fill") for rect in root.iter(f"{SVG}rect")}
    assert len(fills) == 2


def test_a_name_cannot_become_markup() -> None:
    evil = Gantt(title="<b>", records=(record("<i>", "<u>", 0.0, 9.0, "<a>"),))
    root = ET.fromstring(evil._repr_svg_())
    assert "<i> of <u>: 1 (<a>), waited 0 s" in [one.text for one in root.iter(f"{SVG}title")]


def test_jobs_that_take_no_time_or_a_year_can_be_drawn() -> None:
    for end_s in (0.0, 3e7):
        one = Gantt(title="", records=(record("a", "", 0.0, end_s, "gpu0"),))
        assert len(list(ET.fromstring(one._repr_svg_()).iter(f"{SVG}line"))) <= 13
        assert "gpu0" in repr(one)


def test_five_thousand_jobs_are_drawn_as_fewer_bars() -> None:
    records = tuple(
        record(str(n), f"user{n % 5}", n * 10.0, n * 10.0 + 9.0, f"gpu{n % 8}")
        for n in range(5_000)
    )
    picture = ET.fromstring(Gantt(title="many", records=records)._repr_svg_())
    assert len(list(picture.iter(f"{SVG}rect"))) <= 2 * 2_000


def test_a_result_is_drawn_and_zoomed_into_under_its_policys_name() -> None:
    jobs = [SimJob(id="job", submit_s=0.0, service_s=60.0, gpus=1, user="amy")]
    result = try_policy(Workload.of("day", jobs), Cluster.parse("1x1"), "fifo")
    assert gantt(result).title == "under fifo"
    assert gantt(result, "monday").title == "monday"
    markup = zoomable(result, "<monday>")._repr_html_()
    assert markup.startswith('<iframe srcdoc="&lt;')
    assert "SIMULATED" in markup
    assert "<monday>" not in markup
    assert markup.count("<") == 2
