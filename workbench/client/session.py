"""One kernel session: makes job directories, hands jobs over and follows them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.client.agent import AgentClient
from workbench.client.controller import ControllerClient
from workbench.client.environment import own_environment
from workbench.client.stopped import Stopped, resume
from workbench.core.errors import PeerError, WorkbenchError
from workbench.protocol.endings import ending_from
from workbench.protocol.job_files import ENDED, OUTPUT, read_json
from workbench.protocol.messages import (
    Advanced,
    JobOver,
    JobView,
    LeaseEnding,
    OpenSession,
    RequestSpec,
    Status,
)
from workbench.protocol.text import carried
from workbench.transport.errors import ConnectionLost
from workbench.transport.paths import jobs_directory

RECONNECT_PAUSE_S = 0.5
RECONNECT_LIMIT_S = 60.0
ENDING_LOOK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A job directory that is being filled; nothing knows of it yet."""

    job: str
    directory: Path

    def remove(self) -> None:
        """Delete the directory and everything in it."""
        shutil.rmtree(self.directory, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The controller's view of the job changed."""

    view: JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """One line of output.jsonl."""

    line: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A peer is away; following goes on by itself when it is back."""

    error: WorkbenchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """The job ended; nothing follows."""

    ending: LeaseEnding


Happening = Seen | Printed | Trouble | Over


class KernelSession:
    """What one notebook kernel holds: a session id and its connections.

    Args:
        modules: Returns the installed packages that the notebook has imported by now.
    """

    def __init__(self, modules: Callable[[], list[str]]) -> None:
        self.id = secrets.token_hex(16)
        self._modules = modules
        self._controller: ControllerClient | None = None
        self._agent: AgentClient | None = None
        self._connecting = asyncio.Lock()

    def new_job(self) -> Staged:
        """Make an empty job directory with a fresh id.

        Raises:
            BadPlace: The data directory cannot be used.
        """
        job = secrets.token_hex(16)
        directory = jobs_directory() / job
        directory.mkdir(mode=0o700)
        return Staged(job=job, directory=directory)

    async def controller(self) -> ControllerClient:
        """Return a live connection to the controller, made or made again where needed."""
        async with self._connecting:
            if self._controller is None or self._controller.is_lost:
                self._controller = await ControllerClient.connect()
            return self._controller

    async def agent(self) -> AgentClient:
        """Return a live connection to the agent on which this session is open."""
        async with self._connecting:
            if self._agent is None or self._agent.is_lost:
                agent = await AgentClient.connect()
                await agent.open_session(
                    OpenSession(
                        session=self.id,
                        python=carried(sys.executable),
                        env={
                            carried(name): carried(value)
                            for name, value in own_environment(os.environ).items()
                        },
                        cwd=carried(_directory()),
                        sys_path=[carried(place) for place in sys.path],
                        modules=self._modules(),
                        kernel_pid=os.getpid(),
                    )
                )
                self._agent = agent
            return self._agent

    async def prepare(self) -> Status:
        """Have controller, agent and a warm process ready; return the lab now."""
        resume()
        controller, agent = await asyncio.gather(self.controller(), self.agent())
        await agent.warm(self.id, self._modules())
        return await controller.status()

    async def submit(
        self,
        staged: Staged,
        request: RequestSpec,
        *,
        name: str,
        notebook: str | None,
        detach: bool = False,
    ) -> None:
        """Stage the job at the agent, then queue it; on an error nothing is left behind.

        Raises:
            UserError: The request is refused; the message says what would fit.
            PeerError: Controller or agent cannot be reached.
        """
        try:
            controller, agent = await asyncio.gather(self.controller(), self.agent())
            await agent.stage(staged.job, self.id, detach=detach)
            try:
                await controller.submit(staged.job, request, name=name, notebook=notebook)
            except ConnectionLost:
                controller = await self.controller()
                await controller.submit(staged.job, request, name=name, notebook=notebook)
            except WorkbenchError:
                await agent.discard(staged.job)
                raise
            except asyncio.CancelledError:
                # Whether it is queued by now is not known: take it out, then forget it.
                with contextlib.suppress(WorkbenchError):
                    await controller.cancel(staged.job, "interrupted by its owner")
                with contextlib.suppress(WorkbenchError):
                    await agent.discard(staged.job)
                raise
        except BaseException:
            staged.remove()
            raise

    async def interrupt(self, job: str) -> None:
        """Raise KeyboardInterrupt in the job's running statement."""
        resume()
        await (await self.agent()).interrupt(job)

    async def cancel(self, job: str, reason: str) -> None:
        """End the job; on an ended one this changes nothing."""
        resume()
        await (await self.controller()).cancel(job, reason)

    async def follow(self, job: str) -> AsyncGenerator[Happening, None]:
        """Yield what happens to the job until it is over, through restarts of its peers.

        Lines of output come in order, each once. Only `Over` ends the iteration.
        """
        queue: asyncio.Queue[Happening] = asyncio.Queue()
        output = _Output(self, job)
        tasks = [
            asyncio.create_task(self._persist(self._follow_controller, job, queue)),
            asyncio.create_task(self._persist(output.follow, job, queue)),
            asyncio.create_task(output.look_for_the_end(queue)),
        ]
        try:
            while True:
                happening = await queue.get()
                yield happening
                if isinstance(happening, Over):
                    return
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Close the connections; jobs that are not detached end after their grace time."""
        for connection in (self._controller, self._agent):
            if connection is not None:
                await connection.close()

    async def _persist(
        self,
        follow: Callable[[str, asyncio.Queue[Happening]], Any],
        job: str,
        queue: asyncio.Queue[Happening],
    ) -> None:
        loop = asyncio.get_running_loop()
        last_word = loop.time()
        while True:
            try:
                await follow(job, queue)
            except PeerError as error:
                if isinstance(error, ConnectionLost | Stopped):
                    last_word = loop.time()  # It was there until now, or comes with `up` only.
                queue.put_nowait(Trouble(error=error))
                if loop.time() - last_word > RECONNECT_LIMIT_S:
                    ending = LeaseEnding(outcome="lost", detail=f"out of sight: {error}")
                    queue.put_nowait(Over(ending=ending))
                    return
                await asyncio.sleep(RECONNECT_PAUSE_S)
            except WorkbenchError as error:
                ending = LeaseEnding(outcome="lost", detail=str(error))
                queue.put_nowait(Over(ending=ending))
                return
            else:
                return

    async def _follow_controller(self, job: str, queue: asyncio.Queue[Happening]) -> None:
        controller = await self.controller()
        async with contextlib.aclosing(controller.watch(job)) as statuses:
            async for status in statuses:
                view = find_job(status, job)
                if view is None:
                    continue
                queue.put_nowait(Seen(view=view))
                if view.state == "ended":
                    if view.started_unix_s is None:
                        queue.put_nowait(Over(ending=never_started(view)))
                    return


class _Output:
    """Reads a job's output.jsonl as the agent says that it grows."""

    def __init__(self, session: KernelSession, job: str) -> None:
        self._session = session
        self._directory = jobs_directory() / job
        self._offset = 0
        self._rest = b""
        self._reading = asyncio.Lock()

    async def follow(self, job: str, queue: asyncio.Queue[Happening]) -> None:
        agent = await self._session.agent()
        async with contextlib.aclosing(agent.follow(job)) as messages:
            async for message in messages:
                await self._print(queue)
                if isinstance(message, JobOver):
                    queue.put_nowait(Over(ending=message.ending))
                    return
                assert isinstance(message, Advanced)

    async def look_for_the_end(self, queue: asyncio.Queue[Happening]) -> None:
        """Take the ending from the job's own record, where no word of it comes."""
        was_there = False
        while True:
            await asyncio.sleep(ENDING_LOOK_S)
            record = await asyncio.to_thread(read_json, self._directory / ENDED)
            if record is not None and was_there:
                await self._print(queue)
                queue.put_nowait(Over(ending=ending_from(record)))
                return
            was_there = record is not None

    async def _print(self, queue: asyncio.Queue[Happening]) -> None:
        async with self._reading:
            for line in await asyncio.to_thread(self._read):
                queue.put_nowait(Printed(line=line))

    def _read(self) -> list[dict[str, Any]]:
        try:
            with (self._directory / OUTPUT).open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return parse_lines(lines)


def _directory() -> str:
    """Return the working directory; an empty text where it was removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""


def parse_lines(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the objects of lines of output.jsonl; a line that a full disk tore is left out."""
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def find_job(status: Status, job: str) -> JobView | None:
    """Return the view of `job`, live or lately ended, or None."""
    return next((view for view in (*status.jobs, *status.ended) if view.id == job), None)


def never_started(view: JobView) -> LeaseEnding:
    """Return how a job ended that left the queue without ever having run."""
    outcome = view.outcome
    if outcome in {"cancelled", "expired", "lost", "failed"}:
        return LeaseEnding(outcome=outcome, detail=view.reason)  # type: ignore[arg-type]
    return LeaseEnding(outcome="lost", detail=view.reason)
