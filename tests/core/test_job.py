from dataclasses import FrozenInstanceError, fields, replace

import pytest

from tests.core.builders import ALICE
from workbench.core.job import Job, evolve
from workbench.core.model import JobId, Request


def job_with_every_field() -> Job:
    job = Job(
        id=JobId("a"),
        owner=ALICE,
        request=Request(),
        name="",
        notebook=None,
        number=0,
        submitted_at=0.0,
        queued_at=0.0,
    )
    return replace(job, **{field.name: object() for field in fields(Job)})  # type: ignore[arg-type]


def test_a_copy_differs_in_what_is_changed_alone() -> None:
    job = job_with_every_field()
    after = evolve(job, level=3)
    assert after == replace(job, level=3)
    assert job.level != 3
    assert type(after) is Job


def test_a_copy_is_frozen_too() -> None:
    after = evolve(job_with_every_field(), level=3)
    with pytest.raises(FrozenInstanceError):
        after.level = 4  # type: ignore[misc]
