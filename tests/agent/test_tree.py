"""Processes are told apart from later ones with the same pid, and found wherever they hide."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from workbench.agent.process import (
    NO_LEASE,
    ProcessId,
    is_alive,
    mark_of,
    open_pidfd,
    own_id,
    read_stat,
    send_signal,
)
from workbench.agent.tree import Ending, Tree
from workbench.protocol.environment import MARK

LEASE = mark_of("ab" * 16, "L1")


Sleeper = Callable[..., ProcessId]


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    """Starts processes that sleep, and ends them."""
    started = []

    def start(**options: Any) -> ProcessId:
        process = subprocess.Popen(["sleep", "60"], **options)
        started.append(process)
        return read_stat(process.pid).id

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_every_mark_has_the_same_width() -> None:
    assert len(LEASE) == len(NO_LEASE) == len(mark_of("c" * 32, "L" + "9" * 30)) == 64


def test_a_recycled_pid_is_another_process(sleeper: Sleeper) -> None:
    process = sleeper()
    earlier = ProcessId(pid=process.pid, start_ticks=process.start_ticks - 1)
    assert is_alive(process)
    assert not is_alive(earlier)
    assert open_pidfd(earlier) is None
    send_signal(earlier, signal.SIGKILL)
    assert is_alive(process)


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(read_stat(process.pid).id)
    process.wait()
    assert read_stat(process.pid) is None


def test_a_tree_is_children_session_and_mark_and_nobody_else(sleeper: Sleeper) -> None:
    older = sleeper(start_new_session=True, env={MARK: LEASE})
    time.sleep(1.1 / os.sysconf("SC_CLK_TCK"))
    leader = sleeper(start_new_session=True)
    by_mark = sleeper(start_new_session=True, env={MARK: LEASE})
    other = sleeper(start_new_session=True, env={MARK: mark_of("ab" * 16, "L2")})
    unmarked = sleeper(start_new_session=True)
    members = Tree(leader=leader, mark=LEASE).members()
    assert by_mark in members
    assert {older, other, unmarked, leader, own_id()}.isdisjoint(members)


def test_the_session_of_a_dead_leader_still_counts_but_not_one_that_took_its_number(
    sleeper: Sleeper,
) -> None:
    script = "sleep 60 & echo $!; exec sleep 60"
    with subprocess.Popen(
        ["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE, text=True
    ) as leader:
        leader_id = read_stat(leader.pid).id
        child = read_stat(int(leader.stdout.readline())).id
        pidfd = open_pidfd(child)
        took_over = ProcessId(pid=leader.pid, start_ticks=leader_id.start_ticks - 1)
        assert child not in Tree(leader=took_over, mark=LEASE).members()
        leader.kill()
        leader.wait()
        tree = Tree(leader=leader_id, mark=LEASE)
        assert tree.members() == [child]
        assert not Ending(tree, grace_s=60).step()
        select.select([pidfd], [], [])
        os.close(pidfd)
        assert tree.members() == []


def test_an_ending_gives_time_before_it_kills() -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 1; done"
    with subprocess.Popen(
        ["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE, env={MARK: LEASE}
    ) as process:
        process.stdout.readline()
        ending = Ending(Tree(leader=own_id(), mark=LEASE), grace_s=0.3)
        ending.step()
        assert process.poll() is None
        while not ending.step():
            time.sleep(ending.wait_s())
            process.poll()
        assert process.wait() == -signal.SIGKILL
