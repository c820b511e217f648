from __future__ import annotations

import os
from pathlib import Path

from workbench.devices.processes import UNKNOWN_MEMORY, read_process_table
from workbench.protocol.telemetry import NotAvailable, Reading

OWN_NAMESPACE = Path("/proc/self/ns/pid").stat().st_ino


def test_a_process_of_this_namespace_has_its_owner() -> None:
    table = read_process_table([(os.getpid(), 5)], total_bytes=10, first_namespace=OWN_NAMESPACE)
    assert table.rows[0].owner_uid == Reading(os.getuid())
    assert table.reason is None


def test_in_another_namespace_a_pid_says_nothing_about_the_owner() -> None:
    """Case 15, NVIDIA/nvidia-docker#1483: this pid exists, and is an unrelated process."""
    table = read_process_table([(os.getpid(), 5)], total_bytes=10, first_namespace=1)
    assert table.rows[0].owner_uid == Reading(reason=NotAvailable.OTHER_NAMESPACE)
    assert table.reason is None


def test_a_pid_that_is_not_here_has_no_owner() -> None:
    table = read_process_table([(2**22, 5)], total_bytes=10, first_namespace=OWN_NAMESPACE)
    assert table.rows[0].owner_uid == Reading(reason=NotAvailable.NO_SUCH_PROCESS)


def test_memory_that_the_driver_does_not_tell_is_unknown_by_any_binding() -> None:
    table = read_process_table([(41, None), (42, UNKNOWN_MEMORY)], total_bytes=10)
    assert [row.used_bytes.value for row in table.rows] == [None, None]


def test_more_memory_than_the_card_has_is_implausible() -> None:
    table = read_process_table([(42, 11)], total_bytes=10)
    assert table.rows == ()
    assert table.reason is NotAvailable.IMPLAUSIBLE
