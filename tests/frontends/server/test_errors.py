"""One mapping from errors to what a browser is told."""

from __future__ import annotations

import pytest

from workbench.client import BugError, NeverFits, PeerError, UserError
from workbench.frontends.server.errors import HTTP_STATUS, failure_from
from workbench.protocol.messages import Failure


@pytest.mark.parametrize(
    ("error", "fault", "status"),
    [
        (UserError("no"), "user", 400),
        (NeverFits("no"), "user", 400),
        (PeerError("no"), "peer", 503),
        (BugError("no"), "bug", 500),
    ],
)
def test_whose_fault_it_is_decides_the_http_status(
    error: Exception, fault: str, status: int
) -> None:
    failure = failure_from(error)
    assert (failure.fault, failure.error, failure.message) == (fault, type(error).__name__, "no")
    assert HTTP_STATUS[failure.fault] == status


def test_the_next_step_is_passed_on() -> None:
    told = failure_from(PeerError("nobody listens", next_step="Run `workbench up`"))
    assert told.next_step == "Run `workbench up`"


def test_an_error_of_another_kind_is_a_bug_that_names_it() -> None:
    assert failure_from(KeyError("job")) == Failure(
        fault="bug",
        error="KeyError",
        message="Workbench's half in the Jupyter server failed with KeyError: 'job'",
        next_step="Look into the Jupyter server's log and report what it says",
    )
