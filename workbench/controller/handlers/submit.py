"""Submit: queue a job. Idempotent by id."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from workbench.controller.lab import Lab, uid_of
from workbench.controller.rules import group_of
from workbench.core.errors import UserError
from workbench.core.events import JobSubmitted
from workbench.core.model import JobId, JobKind, PriorityClass, Request
from workbench.protocol.messages import Done, RequestSpec, Submit
from workbench.transport.connection import Connection

_JOB_ID: Final = re.compile(r"[0-9a-f]{32}")
NAME_LIMIT: Final = 200
NOTEBOOK_LIMIT: Final = 4096


async def submit(lab: Lab, connection: Connection[Any], message: Submit) -> Done:
    """Queue the job.

    Raises:
        NeverFits: It is larger than this host; nothing was queued.
        UserError: It is not well formed; nothing was queued.
        JournalUnwritten: It could not be made durable; nothing was queued.
    """
    _check_texts(message)
    await lab.driver.ask(
        partial(
            JobSubmitted,
            job=JobId(message.job),
            owner=uid_of(connection),
            request=request_of(message.request),
            name=message.name,
            notebook=message.notebook,
            group=group_of(uid_of(connection), lab.settings),
        )
    )
    return Done()


def request_of(spec: RequestSpec) -> Request:
    """Return the core's request for one from the wire."""
    return Request(
        kind=JobKind(spec.kind),
        priority=PriorityClass(spec.priority),
        gpus=spec.gpus,
        cores=spec.cores,
        memory_bytes=spec.memory_bytes,
        gpu_memory_bytes=spec.gpu_memory_bytes,
        time_limit_s=spec.time_limit_s,
        wait_limit_s=spec.wait_limit_s,
    )


def _check_texts(message: Submit) -> None:
    if not _JOB_ID.fullmatch(message.job):
        raise UserError(f"a job id is 32 hexadecimal digits, not {message.job[:40]!r}")
    if len(message.name) > NAME_LIMIT:
        raise UserError(
            f"a job's name has at most {NAME_LIMIT} characters, this one has {len(message.name)}",
            next_step="Give a shorter --name",
        )
    if message.notebook is not None and len(message.notebook) > NOTEBOOK_LIMIT:
        raise UserError(f"a notebook's path has at most {NOTEBOOK_LIMIT} characters")
