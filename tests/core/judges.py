"""Judges every decision by a model that knows nothing of `State`."""

from dataclasses import replace
from typing import Any

from tests.core.builders import GIB, Lab, gpu
from workbench.core.decisions import (
    Decision,
    End,
    Grant,
    Grow,
    Preempt,
    Resume,
    Shrink,
    Stop,
    Suspend,
)
from workbench.core.model import Outcome, Preemption, PriorityClass, Request, Units
from workbench.core.placement import shape_of
from workbench.core.policy import Bypass, Policy
from workbench.core.settings import Settings

CORES, MEMORY_GIB, GPUS = 8, 16, 4
RANK = {priority: rank for rank, priority in enumerate(PriorityClass)}


def without(units: Units, gpus: tuple[Any, ...]) -> Units:
    return replace(units, gpus=tuple(gpu_ for gpu_ in units.gpus if gpu_ not in gpus))


class Judges:
    """What the model knows of a lab, and what it says to each decision."""

    def __init__(self) -> None:
        super().__init__()
        self.lab: Lab
        self.policy: Policy
        self.rules: Settings
        self.preempted: dict[str, str] = {}
        self.shrinking: dict[str, Shrink] = {}
        self.suspending: dict[str, Suspend] = {}
        self.suspended: dict[str, float] = {}
        self.resuming: dict[str, Resume] = {}
        self.agents: dict[Any, None] = {}
        self.requests: dict[str, tuple[int, Request]] = {}
        self.waiting: dict[str, float] = {}
        self.leased: dict[str, Units] = {}
        self.started: dict[str, float] = {}
        self.served: dict[str, float] = {}
        self.cancelled: dict[str, None] = {}
        self.usable: dict[Any, bool] = {}
        self.is_held = False

    def forget_steps(self, job: str) -> None:
        for pending in (self.shrinking, self.suspending, self.suspended, self.resuming):
            pending.pop(job, None)

    def judge(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Grant):
                self.judge_grant(decision)
            elif isinstance(decision, Preempt | Shrink | Suspend):
                self.judge_giving_way(decision)
            elif isinstance(decision, Grow):
                self.judge_grow(decision)
            elif isinstance(decision, Resume):
                self.judge_resume(decision)
            else:
                self.judge_end(decision)
        winners = [d.winner for d in decisions if isinstance(d, Preempt | Shrink | Suspend)]
        for winner in dict.fromkeys(winners):
            self.judge_winner(winner)

    def judge_giving_way(self, preempt: Preempt | Shrink | Suspend) -> None:
        """Only what runs, may give way, is past its quantum and stands no higher."""
        _, victim = self.requests[preempt.job]
        owner, winner = self.requests[preempt.winner]
        waits = {**self.waiting, **self.suspended}
        assert preempt.winner in waits
        assert owner in self.agents
        assert preempt.job != preempt.winner
        if preempt.job not in self.suspended:
            assert preempt.at >= self.started[preempt.job] + self.rules.quantum_s
        if preempt.job in self.shrinking:
            assert preempt.at >= self.shrinking[preempt.job].at + self.rules.quantum_s
        waits_s = preempt.at - waits[preempt.winner]
        self.judge_step(preempt, victim)
        is_aged = self.rules.ageing_s is not None and waits_s >= self.rules.ageing_s
        assert RANK[victim.priority] >= RANK[winner.priority] - is_aged
        if RANK[victim.priority] <= RANK[winner.priority] - is_aged:
            assert self.policy.preempts
        assert (
            "it keeps its place" in preempt.reason
            or " back " in preempt.reason
            or ("after about" in preempt.reason)
        )

    def judge_step(self, preempt: Preempt | Shrink | Suspend, victim: Request) -> None:
        """What it may do, as far as it may, and no stop that gains nothing."""
        held = self.leased[preempt.job]
        assert preempt.job not in {**self.preempted, **self.suspending, **self.resuming}
        if isinstance(preempt, Preempt):
            assert preempt.step in victim.preemption
            assert preempt.step in {Preemption.CHECKPOINT, Preemption.REQUEUE}
            self.preempted[preempt.job] = preempt.winner
            is_weighed = self.policy.asks_run_times
            if preempt.job in self.started and self.rules.restart_s and not is_weighed:
                ran = preempt.at - self.started[preempt.job] + self.served.get(preempt.job, 0.0)
                left = [span - ran for span in (victim.expected_s, victim.time_limit_s) if span]
                assert all(not 1e-3 < one_s < self.rules.restart_s - 1e-3 for one_s in left)
            return
        assert preempt.job not in {**self.shrinking, **self.suspended}
        if isinstance(preempt, Shrink):
            assert Preemption.SHRINK in victim.preemption
            assert set(preempt.gpus) < set(held.gpus)
            assert len(held.gpus) - len(preempt.gpus) >= (victim.min_gpus or 0) >= 1
            self.shrinking[preempt.job] = preempt
        else:
            assert Preemption.SUSPEND in victim.preemption
            assert not held.gpus
            self.suspending[preempt.job] = preempt

    def judge_grow(self, grow: Grow) -> None:
        """Only what a shrunk job lacks, free, and of no use to anybody who waits."""
        owner, request = self.requests[grow.job]
        assert owner in self.agents
        assert not self.is_held
        held = self.leased[grow.job]
        assert grow.gpus
        assert len(held.gpus) + len(grow.gpus) <= request.gpus
        for device in grow.gpus:
            assert self.usable[device]
            assert all(device not in units.gpus for units in self.leased.values())
        for job in self.waiting:
            other_owner, other = self.requests[job]
            assert not (other.gpus and other_owner in self.agents), f"{job} waits for a GPU"
        self.leased[grow.job] = replace(held, gpus=held.gpus + grow.gpus)

    def judge_resume(self, resume: Resume) -> None:
        owner, request = self.requests[resume.job]
        assert owner in self.agents
        assert resume.cores == request.cores
        del self.suspended[resume.job]
        self.leased[resume.job] = replace(self.leased[resume.job], cores=resume.cores)
        self.resuming[resume.job] = resume

    def judge_winner(self, winner: str) -> None:
        """With what is free and what gives way, it fits; without any one of them it does not."""
        _, request = self.requests[winner]
        if winner in self.suspended:
            request = Request(cores=request.cores)
        kept = {job: self.kept_from(job, winner) for job in self.leased}
        victims = [job for job, units in kept.items() if units != self.leased[job]]
        assert self.fits(request, kept)
        for spared in victims:
            assert not self.fits(request, {**kept, spared: self.leased[spared]})
        for job in victims:
            for device in self.leased[job].gpus if job not in self.preempted else ():
                more = replace(kept[job], gpus=(*kept[job].gpus, device))
                assert device in kept[job].gpus or not self.fits(request, {**kept, job: more})

    def kept_from(self, job: str, winner: str) -> Units:
        """What a job keeps once it gave way to this winner; what others get is not the winner's."""
        units = self.leased[job]
        shrink, suspend = self.shrinking.get(job), self.suspending.get(job)
        if self.preempted.get(job) == winner:
            return Units(gpus=shrink.gpus if shrink is not None else ())
        if shrink is not None and shrink.winner == winner:
            return without(units, shrink.gpus)
        if suspend is not None and suspend.winner == winner:
            return replace(units, cores=0)
        return units

    def fits(self, request: Request, after: dict[str, Units]) -> bool:
        kept = list(after.values())
        taken = {device for units in kept for device in units.gpus}
        large = {gpu(0), gpu(1)} if (request.gpu_memory_bytes or 0) > 40 * GIB else None
        free = [
            device
            for device, usable in self.usable.items()
            if usable and device not in taken and (large is None or device in large)
        ]
        return (
            len(free) * (not self.is_held) >= request.gpus
            and CORES - sum(units.cores for units in kept) >= request.cores
            and MEMORY_GIB * GIB - sum(units.memory_bytes for units in kept)
            >= (request.memory_bytes or 0)
        )

    def judge_grant(self, grant: Grant) -> None:
        owner, request = self.requests[grant.job]
        del self.waiting[grant.job]
        assert owner in self.agents
        assert len(set(grant.units.gpus)) == request.gpus
        for device in grant.units.gpus:
            assert self.usable[device]
            assert not self.is_held
            assert all(device not in units.gpus for units in self.leased.values())
            large = gpu(0), gpu(1)
            assert (request.gpu_memory_bytes or 0) <= 40 * GIB or device in large
        self.leased[grant.job] = grant.units
        if (self.rules.bound_s, self.rules.ageing_s) != (None, None) or self.preempted:
            return
        for job in self.waiting:
            other_owner, other = self.requests[job]
            if other_owner not in self.agents or shape_of(other) != shape_of(request):
                continue
            if self.policy.bypass is not Bypass.GREEDY:
                continue
            assert RANK[other.priority] >= RANK[request.priority], f"{job} is of a higher class"
            if other.priority is request.priority and self.policy.name == "fifo":
                assert int(job[1:]) > int(grant.job[1:]), f"{job} came first"

    def judge_end(self, decision: Stop | End) -> None:
        _, request = self.requests[decision.job]
        if isinstance(decision, End):
            assert decision.outcome is Outcome.CANCELLED or decision.job not in self.served
            since, limit_s = self.waiting.pop(decision.job), request.wait_limit_s
        else:
            assert decision.job in self.leased
            since, limit_s = self.started.get(decision.job, self.lab.at), request.time_limit_s
            since -= self.served.get(decision.job, 0.0)
            self.preempted.pop(decision.job, None)
            self.forget_steps(decision.job)
        if decision.outcome is Outcome.CANCELLED:
            assert decision.job in self.cancelled
        else:
            assert limit_s is not None
            assert decision.at >= since + limit_s
