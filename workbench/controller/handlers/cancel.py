"""Cancel: end a job of the sender's."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from workbench.controller.lab import Lab, own_job, uid_of
from workbench.core.events import CancelRequested
from workbench.protocol.messages import Cancel, Done
from workbench.transport.connection import Connection

REASON_LIMIT: Final = 500


async def cancel(lab: Lab, connection: Connection[Any], message: Cancel) -> Done:
    """Have the job end; on an ended job this changes nothing.

    Raises:
        Unknown: There is no such job.
        NotYours: It is another user's.
        JournalUnwritten: It could not be made durable; the job goes on.
    """
    uid = uid_of(connection)
    job = own_job(lab, uid, message.job)
    reason = message.reason if job.owner == uid else f"cancelled by uid {uid}, an administrator"
    await lab.driver.ask(partial(CancelRequested, job=job.id, reason=reason[:REASON_LIMIT]))
    return Done()
