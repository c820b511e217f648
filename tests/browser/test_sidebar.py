"""What the sidebar shows of a lab, and what can be done there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import LabPage
from tests.frontends.server import scenes
from tests.frontends.server.live_server import LiveServer
from tests.frontends.server.scenes import Scene

SCENES = {
    "none": (scenes.no_gpu, "Devices"),
    "one": (scenes.one_gpu, "1 GPU"),
    "four": (scenes.busy_lab, "4 GPUs"),
    "sixteen": (scenes.big_lab, "16 GPUs"),
    "long": (scenes.long_names, "3 GPUs"),
    "simulated": (scenes.simulated, "4 GPUs"),
}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


@pytest.mark.parametrize("theme", THEMES)
def test_every_lab_fits_at_any_width(
    lab: LiveServer, page: LabPage, shots: Path, theme: str
) -> None:
    page.use_theme(THEMES[theme])
    for name, (scene, heading) in SCENES.items():
        lab.show(scene())
        expect(page.sidebar.get_by_role("heading", level=3).first).to_have_text(heading)
        for width in (460, 300, 180):
            page.set_width(width)
            assert page.overflow_px() == 0, f"{name} at {width} px"
            page.shoot(shots / f"{name}-{theme}-{width}.png")


def test_each_device_shows_its_use_its_memory_and_who_is_on_it(
    lab: LiveServer, page: LabPage
) -> None:
    lab.show(scenes.busy_lab())
    mine = page.sidebar.get_by_role("listitem", name="GPU 0, NVIDIA A100-SXM4-80GB")
    expect(mine).to_contain_text("GPU-5e1f0000")
    expect(mine).to_contain_text("ana: train_digits.ipynb · cell 1")
    expect(mine.get_by_role("meter", name="GPU busy")).to_have_attribute("aria-valuenow", "83")
    expect(mine.get_by_role("meter", name="memory")).to_have_attribute(
        "aria-valuetext", "24.1 / 80 GiB"
    )
    others = page.sidebar.get_by_role("listitem", name="GPU 1")
    expect(others).to_contain_text("bob\u2019s notebook")
    outside = page.sidebar.get_by_role("listitem", name="GPU 2")
    expect(outside).to_contain_text("Used outside Workbench by uid 1007, 12 GiB")
    host = page.sidebar.get_by_role("listitem", name="Processor and memory of the host")
    expect(host).to_contain_text("48 of 64 cores")
    expect(host).to_contain_text("121 / 512 GiB")


def test_what_cannot_be_read_is_not_available_with_the_reason_and_never_zero(
    lab: LiveServer, page: LabPage
) -> None:
    lab.show(scenes.big_lab())
    lost = page.sidebar.get_by_role("listitem", name="GPU 5, NVIDIA A100-SXM4-80GB")
    expect(lost).to_contain_text("lost")
    expect(lost.get_by_title("No figures: device lost")).to_have_text("n/a")
    expect(lost.get_by_role("meter")).to_have_count(0)
    expect(lost).not_to_contain_text("0 %")
    stale = page.sidebar.get_by_role("listitem", name="GPU 9")
    expect(stale).to_contain_text("47 s old")


def test_a_host_without_a_gpu_says_why_and_what_to_do(lab: LiveServer, page: LabPage) -> None:
    lab.show(scenes.no_gpu())
    expect(page.sidebar).to_contain_text("No GPU on this host")
    expect(page.sidebar).to_contain_text("libnvidia-ml.so.1) is not on this host")
    expect(page.sidebar).to_contain_text("Install the NVIDIA driver if there is a GPU")
    expect(page.sidebar).to_contain_text("Nothing runs and nothing waits")


def test_the_queue_says_who_what_why_and_when_and_can_be_narrowed_to_mine(
    lab: LiveServer, page: LabPage
) -> None:
    lab.show(scenes.busy_lab())
    waiting = page.sidebar.get_by_role("listitem", name="fine-tune of ana")
    for said in (
        "resnet_ablation.ipynb",
        "next",
        "you · high priority · 2 GPUs, 16 cores",
        "Needs 2 GPUs; 1 is free",
        "starts in 5 min to 12 min · waiting for 7 min",
    ):
        expect(waiting).to_contain_text(said)
    others = page.sidebar.get_by_role("listitem", name="chidi\u2019s command")
    expect(others).to_contain_text("start not known: a job before it has no time limit")
    expect(others.get_by_role("button")).to_have_count(0)
    page.sidebar.get_by_role("button", name="Mine (3)").click()
    expect(others).to_have_count(0)
    expect(waiting).to_be_visible()


def test_a_waiting_job_is_cancelled_with_the_keyboard(lab: LiveServer, page: LabPage) -> None:
    lab.show(scenes.busy_lab())
    page.sidebar.get_by_role("button", name="Cancel fine-tune").focus()
    page.page.keyboard.press("Enter")
    expect(page.sidebar.get_by_role("listitem", name="fine-tune of ana")).to_have_count(0)
    page.sidebar.get_by_text("Lately ended").click()
    ended = page.sidebar.get_by_role("listitem", name="fine-tune of ana")
    expect(ended).to_contain_text("cancelled")


def test_a_job_that_has_begun_is_cancelled_only_after_a_question(
    lab: LiveServer, page: LabPage, shots: Path
) -> None:
    lab.show(scenes.busy_lab())
    job = page.sidebar.get_by_role("button", name="Cancel cell 1")
    job.click()
    page.shoot(shots / "question.png", whole=True)
    page.page.get_by_role("button", name="Keep running").click()
    expect(job).to_be_enabled()
    job.click()
    page.page.get_by_role("button", name="Cancel the job").click()
    expect(job).to_have_count(0)


def test_a_refused_cancellation_is_told_with_the_next_step(lab: LiveServer, page: LabPage) -> None:
    lab.show(scenes.busy_lab())
    args = {"job": "gone", "name": "an old job", "hasBegun": False}
    page.page.evaluate(
        "args => window.jupyterapp.commands.execute('gpu-workbench:cancel', args)", args
    )
    told = page.page.get_by_role("alert")
    expect(told).to_contain_text("an old job was not cancelled. There is no job gone of yours.")
    expect(told).to_contain_text("Look at `workbench jobs`")


@pytest.mark.parametrize(
    ("scene", "text"),
    [
        (scenes.no_gpu, "No GPU"),
        (scenes.busy_lab, "1 GPU leased to you"),
        (scenes.one_gpu, "1 GPU, none leased to you"),
        (scenes.simulated, "1 GPU leased to you (SIMULATED)"),
    ],
)
def test_the_status_bar_always_says_whether_there_is_a_gpu_for_me(
    lab: LiveServer, page: LabPage, scene: Callable[[], Scene], text: str
) -> None:
    # jupyterhub/jupyterhub#5404
    lab.show(scene())
    expect(page.status_text).to_have_text(text)


def test_the_last_minute_of_each_device_is_drawn(
    lab: LiveServer, page: LabPage, shots: Path
) -> None:
    page.use_theme(THEMES["light"])
    page.set_width(320)
    built = scenes.busy_lab()
    for step in range(9):
        use = [100.0 * (step % 3) / 2, 90.0 + step, 5.0 * step, 0.0]
        lab.show(scenes.with_util(built, use).status(at_s=scenes.NOW_S + 7 * step + 1))
        first = page.sidebar.get_by_role("listitem", name="GPU 2")
        expect(first).to_contain_text(f"{5 * step} %")
    drawn = page.sidebar.locator(".gw-sparkline polyline")
    expect(drawn).to_have_count(4)
    assert len((drawn.first.get_attribute("points") or "").split()) == 9
    page.shoot(shots / "sparklines.png")
    page.shoot(shots / "whole.png", whole=True)
