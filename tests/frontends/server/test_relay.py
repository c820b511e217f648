"""One watch of the controller for all browsers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from tests.frontends.server.scenes import Scene, job
from workbench.client import PeerError, UserError
from workbench.frontends.server.relay import Relay
from workbench.protocol.messages import Status

LOG = logging.getLogger("tests.relay")


class ScriptedController:
    """Says what a test puts into `says`; an error ends the watch with it."""

    def __init__(self) -> None:
        self.says: asyncio.Queue[Status | Exception] = asyncio.Queue()
        self.cancelled: list[str] = []
        self.watches = 0
        self.closed = asyncio.Event()

    async def watch(self) -> AsyncIterator[Status]:
        self.watches += 1
        while True:
            said = await self.says.get()
            if isinstance(said, Exception):
                raise said
            yield said

    async def cancel(self, job: str) -> None:
        if job == "unknown":
            raise UserError("there is no such job")
        self.cancelled.append(job)

    async def close(self) -> None:
        self.closed.set()


def lab(jobs: int) -> Status:
    return Scene(jobs=[job(number) for number in range(jobs)]).status()


def jobs_in(payload: bytes) -> int:
    return len(json.loads(payload)["jobs"])


def relay_of(*controllers: Any, **options: Any) -> Relay:
    """A relay that connects to each of `controllers` in turn; an exception is raised instead."""
    left = list(controllers)

    async def connect() -> Any:
        following = left.pop(0)
        if isinstance(following, Exception):
            raise following
        return following

    return Relay(connect, LOG, **{"floor_s": 0.0, "first_pause_s": 0.001, **options})


async def test_all_browsers_share_one_watch_and_are_told_the_same_bytes() -> None:
    controller = ScriptedController()
    relay = relay_of(controller)
    async with aclosing(relay.follow()) as first, aclosing(relay.follow()) as second:
        both = asyncio.gather(anext(first), anext(second), relay.latest())
        controller.says.put_nowait(lab(2))
        one, two, three = await both
        assert one is two is three
        assert jobs_in(one) == 2
        assert controller.watches == 1
    await relay.close()


async def test_a_slow_browser_skips_to_the_latest() -> None:
    controller = ScriptedController()
    relay = relay_of(controller)
    async with aclosing(relay.follow()) as slow, aclosing(relay.follow()) as quick:
        for jobs in range(4):
            controller.says.put_nowait(lab(jobs))
            assert jobs_in(await anext(quick)) == jobs
        assert jobs_in(await anext(slow)) == 3
    await relay.close()


async def test_browsers_are_not_told_more_often_than_the_floor_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = ScriptedController()
    relay = relay_of(controller, floor_s=0.25)
    slept: list[float] = []
    turn = asyncio.sleep

    async def note(seconds: float) -> None:
        slept.append(seconds)
        await turn(0)

    monkeypatch.setattr("workbench.frontends.server.relay.asyncio.sleep", note)
    async with aclosing(relay.follow()) as browser:
        for jobs in range(3):
            controller.says.put_nowait(lab(jobs))
            await anext(browser)
        assert slept == [0.25, 0.25, 0.25]
    await relay.close()


async def test_a_controller_that_comes_back_is_found_again_and_each_change_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone = PeerError("nobody listens", next_step="Run `workbench up`")
    first, second = ScriptedController(), ScriptedController()
    relay = relay_of(gone, gone, first, gone, gone, second)
    with caplog.at_level(logging.INFO, logger=LOG.name):
        async with aclosing(relay.follow()) as browser:
            first.says.put_nowait(lab(1))
            second.says.put_nowait(lab(2))
            heard = [json.loads(await anext(browser))]
            while heard[-1]["type"] == "Failure":
                heard.append(json.loads(await anext(browser)))
            first.says.put_nowait(PeerError("the controller went away"))
            while heard[-1]["type"] == "Failure" or len(heard[-1]["jobs"]) < 2:
                heard.append(json.loads(await anext(browser)))
    assert heard[0]["message"] == "nobody listens"
    assert heard[0]["next_step"] == "Run `workbench up`"
    assert first.closed.is_set()
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "GPU Workbench: nobody listens. Run `workbench up`"),
        ("INFO", "GPU Workbench: the controller answers"),
        ("WARNING", "GPU Workbench: the controller went away"),
        ("INFO", "GPU Workbench: the controller answers"),
    ]
    await relay.close()


async def test_a_browser_that_connects_anew_cuts_the_pause_short() -> None:
    controller = ScriptedController()
    relay = relay_of(PeerError("nobody listens"), controller, first_pause_s=3600)
    with pytest.raises(PeerError, match="nobody listens"):
        await relay.latest()
    controller.says.put_nowait(lab(1))
    async with aclosing(relay.follow()) as browser:
        assert json.loads(await anext(browser))["type"] == "Failure"
        assert json.loads(await anext(browser))["type"] == "Status"
    await relay.close()


async def test_an_unexpected_error_is_told_logged_with_its_traceback_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    controller = ScriptedController()
    relay = relay_of(KeyError("surprise"), controller)
    controller.says.put_nowait(lab(1))
    async with aclosing(relay.follow()) as browser:
        told = json.loads(await anext(browser))
        assert (told["fault"], told["error"]) == ("bug", "KeyError")
        assert json.loads(await anext(browser))["type"] == "Status"
    assert caplog.records[0].exc_info is not None
    await relay.close()


async def test_the_watch_ends_some_time_after_the_last_browser_and_begins_anew() -> None:
    first, second = ScriptedController(), ScriptedController()
    relay = relay_of(first, second, linger_s=0.0)
    first.says.put_nowait(lab(1))
    assert jobs_in(await relay.latest()) == 1
    await first.closed.wait()
    assert relay._watching is None
    second.says.put_nowait(lab(2))
    assert jobs_in(await relay.latest()) == 2
    await relay.close()
    assert second.closed.is_set()


async def test_cancelling_goes_over_the_connection_of_the_watch() -> None:
    controller = ScriptedController()
    relay = relay_of(controller)
    controller.says.put_nowait(lab(1))
    await relay.cancel("a-job")
    assert controller.cancelled == ["a-job"]
    with pytest.raises(UserError, match="no such job"):
        await relay.cancel("unknown")
    assert controller.watches == 1
    await relay.close()


async def test_cancelling_without_a_controller_says_why() -> None:
    relay = relay_of(PeerError("nobody listens"), first_pause_s=3600)
    with pytest.raises(PeerError, match="nobody listens"):
        await relay.cancel("a-job")
    await relay.close()
