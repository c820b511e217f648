"""How the lab looks to its users."""

from __future__ import annotations

import os
import time

from tests.core.builders import Lab
from workbench.controller.clock import LabClock
from workbench.controller.views import LabPicture
from workbench.core.events import UseFell
from workbench.core.model import Uid
from workbench.protocol.messages import PROTOCOL, ControllerView, JobView

ME = Uid(1001)
BEGIN_S = 1_700_000_000.0


def spelled(unix_s: float) -> str:
    """The hour, with the date unless that is today's."""
    then = time.localtime(unix_s)
    is_today = then[:3] == time.localtime()[:3]
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", then)


def shown(lab: Lab, now_s: float) -> JobView:
    """The one job of a lab whose clock says so, as its owner sees it."""
    picture = LabPicture(
        controller=ControllerView(
            hostname="host",
            mode="lab",
            uid=os.getuid(),
            pid=1,
            software="0",
            protocol=PROTOCOL,
            simulated=False,
        ),
        state=lab.state,
        standings=lab.scheduler.standings,
        clock=LabClock(offset_s=now_s, floor_s=0.0, boot_s=lambda: 0.0),
        sample=None,
        notices=[],
    )
    [view] = picture.status_for(ME).jobs
    return view


def idle_lab(now_s: float) -> Lab:
    """A job that fell idle two minutes ago."""
    lab = Lab(gpus=1)
    lab.submit("idle", ME, gpus=1)
    lab.start("idle")
    lab.send(UseFell(at=now_s - 120.0, lease=lab.lease("idle"), part=0.02))
    return lab


def test_the_owner_of_an_idle_job_reads_until_when_it_has_to_be_used_on_the_wall_clock() -> None:
    before_s = time.time()
    reason = shown(idle_lab(BEGIN_S), BEGIN_S).reason
    may_be = [
        f"its GPU use is low since {spelled(now_s - 120.0)} (2 %): it counts as class low from "
        f"{spelled(now_s + 480.0)} (in {minutes} minutes) on unless that rises"
        for now_s in (before_s, time.time())
        for minutes in (7, 8)  # A float of so many seconds is not exact.
    ]
    assert reason in may_be


def test_a_lowered_job_says_since_when_and_why_on_another_day_with_the_date() -> None:
    lab = idle_lab(BEGIN_S)
    lab.tick(BEGIN_S + 480.0)
    reason = shown(lab, BEGIN_S + 200_000.0).reason
    day = time.strftime("%Y-%m-%d", time.localtime(time.time() - 199_520.0))
    assert reason.startswith(f"counts as class low since {day} ")
    assert reason.endswith(": its GPU use fell to 2 % and stayed low for 10 minutes")
