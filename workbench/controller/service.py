"""Puts the parts of a controller together, from the journal, and takes them apart again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from workbench import __version__
from workbench.controller.agents import STEPS, Agents
from workbench.controller.clock import host_time, open_clock
from workbench.controller.driver import Driver
from workbench.controller.lab import Lab
from workbench.controller.log import LOG
from workbench.controller.observer import Observer
from workbench.controller.publisher import Publisher
from workbench.controller.releases import Releases
from workbench.controller.rules import Rules
from workbench.controller.views import LabPicture
from workbench.core.events import AgentLost, FairShareSet, HostRebooted, Tick
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Settings
from workbench.devices.nvml_source import NvmlSource
from workbench.devices.sampler import Sampler
from workbench.devices.simulated import SimulatedSource, Simulation
from workbench.devices.source import DeviceSource
from workbench.journal.journal import Journal
from workbench.protocol.messages import PROTOCOL, ControllerView
from workbench.protocol.telemetry import NvmlStatus, Sample

FIRST_SAMPLE_S: Final = 10.0
"""How long a start waits for the first word on the GPUs: before it, `--gpus 1` has no answer."""

BUSY_TIMEOUT_S: Final = 0.5


@contextlib.asynccontextmanager
async def open_lab(
    state: Path, *, mode: Literal["embedded", "lab"], simulation: Simulation | None, rules: Rules
) -> AsyncIterator[Lab]:
    """Restore the lab from its journal and run it until the block is left.

    Args:
        state: The state directory; the caller holds its lock.
        mode: How this controller was started.
        simulation: GPUs to simulate in place of the host's.
        rules: How the queue is ordered.

    Raises:
        PeerError: The journal cannot be opened or read.
    """
    # The loop writes: a lock that somebody else holds may stop it for a moment, not for seconds.
    with Journal.open(state / "journal.sqlite3", busy_timeout_s=BUSY_TIMEOUT_S) as journal:
        lab, observer = _assemble(journal, mode=mode, simulated=simulation is not None, rules=rules)
        async with _sampling(lab, observer, simulation):
            try:
                yield lab
            finally:
                lab.releases.close()
                lab.agents.close()
                lab.publisher.close()
                lab.driver.close()


def _assemble(
    journal: Journal, *, mode: Literal["embedded", "lab"], simulated: bool, rules: Rules
) -> tuple[Lab, Observer]:
    restore = partial(_restore, journal, rules)
    scheduler = restore()
    clock, was_booted = open_clock(journal, last_at=scheduler.state.at, host=host_time())
    view = ControllerView(
        hostname=socket.gethostname(),
        mode=mode,
        uid=os.getuid(),
        pid=os.getpid(),
        software=__version__,
        protocol=PROTOCOL,
        simulated=simulated,
    )

    def picture() -> LabPicture:
        trouble = [str(driver.trouble)] if driver.trouble is not None else []
        return LabPicture(
            controller=view,
            state=driver.state,
            standings=driver.standings,
            clock=clock,
            sample=observer.latest,
            notices=[*trouble, *observer.notices()],
        )

    agents = Agents(lambda: driver)
    publisher = Publisher(picture)
    driver = Driver(
        scheduler=scheduler,
        restore=restore,
        journal=journal,
        clock=clock,
        carry_out=agents.carry_out,
        on_change=publisher.on_change,
    )
    observer = Observer(driver)
    _tell_what_a_start_means(driver, was_booted=was_booted, settings=rules.settings)
    lab = Lab(
        driver=driver,
        agents=agents,
        releases=Releases(driver, latest=lambda: observer.latest),
        publisher=publisher,
        clock=clock,
        view=view,
        started_unix_s=time.time(),
        settings=rules.settings,
    )
    return lab, observer


def _tell_what_a_start_means(driver: Driver, *, was_booted: bool, settings: Settings) -> None:
    """Nobody is connected to a new process, and time has passed."""
    if was_booted:
        LOG.info("the host was booted since: its leases have ended")
        driver.note(HostRebooted)
    fair = settings.half_life_s, settings.core_weight
    if fair != (driver.state.half_life_s, driver.state.core_weight):
        driver.note(partial(FairShareSet, half_life_s=fair[0], core_weight=fair[1]))
    for owner in list(driver.state.agents):
        driver.note(partial(AgentLost, owner=owner))
    driver.note(Tick)


def _restore(journal: Journal, rules: Rules) -> Scheduler:
    settings = replace(rules.settings, steps=STEPS)
    return Scheduler.restore(rules.make_policy(), journal.entries(), journal.snapshot(), settings)


@contextlib.asynccontextmanager
async def _sampling(
    lab: Lab, observer: Observer, simulation: Simulation | None
) -> AsyncIterator[None]:
    """Sample the devices meanwhile; begins when the GPUs have been heard of, or hang."""
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()

    def on_sample(sample: Sample) -> None:
        observer.on_sample(sample)
        lab.releases.on_sample(sample)
        lab.publisher.on_change()
        if sample.nvml.state is not NvmlStatus.NOT_READ:
            heard.set()

    def hand_over(sample: Sample) -> None:
        loop.call_soon_threadsafe(on_sample, sample)

    source: DeviceSource = SimulatedSource(simulation) if simulation is not None else NvmlSource()
    sampler = Sampler([source], on_sample=hand_over)
    sampler.start()
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(heard.wait(), FIRST_SAMPLE_S)
        yield
    finally:
        await asyncio.to_thread(sampler.stop)
