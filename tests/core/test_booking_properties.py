"""What must hold of bookings on any history; the model knows the calendar and nothing of `State`."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.core.builders import ALICE, BOB, gpu
from tests.core.test_properties import GPUS, AnyLab, numbers, owners, picks, requests, rules
from workbench.core.calendar import Booking, BookingId, Span, span_at, spans
from workbench.core.decisions import (
    Decision,
    Grant,
    OpenBooking,
    Preempt,
    ReleaseBooking,
    Stop,
    WarnOverstay,
    WarnUnused,
)
from workbench.core.errors import UserError
from workbench.core.events import BookingCancelled, BookingMade
from workbench.core.model import Outcome, Preemption, PriorityClass
from workbench.core.settings import Settings
from workbench.policies import POLICIES

NEVER = float("inf")
calendars = st.builds(
    dict,
    booking_warn_s=st.sampled_from([0.0, 4.0]),
    booking_shadow_s=st.sampled_from([0.0, 12.0]),
    booking_unused_s=st.sampled_from([None, 8.0]),
    booking_grace_s=st.sampled_from([0.0, 2.0]),
    booking_stops=st.booleans(),
)


gpu_requests = st.fixed_dictionaries(
    {
        "gpus": st.integers(1, 2),
        "time_limit_s": st.sampled_from([None, None, 20.0]),
        "expected_s": st.sampled_from([None, None, 3.0]),
        "preemption": st.sampled_from([(), (), (Preemption.REQUEUE,)]),
    }
)


class AnyCalendar(AnyLab):
    """A lab in which anything happens, and bookings are made and given back besides."""

    @initialize(
        agents=st.just((ALICE, BOB)),
        policy=st.sampled_from([name for name in sorted(POLICIES) if not POLICIES[name].preempts]),
        rules=rules,
        calendar=calendars,
        first=st.lists(st.tuples(owners, gpu_requests), min_size=2, max_size=5),
        is_running=st.booleans(),
    )
    def open(  # type: ignore[override]
        self,
        agents: tuple[Any, ...],
        policy: str,
        rules: Settings,
        calendar: dict[str, Any],
        first: list[tuple[Any, dict[str, Any]]],
        *,
        is_running: bool,
    ) -> None:
        self.bookings: dict[str, Booking] = {}
        self.made: dict[str, float] = {}
        self.opened: dict[str, tuple[Span, tuple[Any, ...], float]] = {}
        self.overstays: dict[tuple[str, str], float] = {}
        self.unused: dict[str, float] = {}
        self.released: dict[tuple[str, float], None] = {}
        self.has_moved = False
        AnyLab.open(
            self,
            agents=agents,
            policy=policy,
            rules=replace(rules, ageing_s=None, **calendar),
            first=first,
            is_running=is_running,
        )

    @rule(owner=owners, request=requests)
    def submit(self, owner: Any, request: dict[str, Any]) -> None:
        """Of one class, so that it is bookings alone that jobs give way to."""
        AnyLab.submit(self, owner, {**request, "priority": PriorityClass.NORMAL})

    @rule(owner=owners, request=gpu_requests)
    def submit_for_gpus(self, owner: Any, request: dict[str, Any]) -> None:
        """Bookings are about these; start them at once and let time pass."""
        AnyLab.submit(self, owner, {"gpu_memory_bytes": None, **request})
        self.start_all_and_wait(1.0)

    @rule(
        owner=owners,
        in_s=st.sampled_from([0.0, 2.0, 6.0, 15.0]),
        length_s=st.sampled_from([3.0, 10.0, 30.0]),
        size=st.integers(1, GPUS),
        named=st.one_of(st.none(), numbers),
        every_s=st.sampled_from([None, 30.0, 50.0]),
    )
    def book(
        self,
        owner: Any,
        in_s: float,
        length_s: float,
        size: int,
        named: int | None,
        every_s: float | None,
    ) -> None:
        booking = Booking(
            id=BookingId(f"b{len(self.made)}"),
            owner=owner,
            start_at=self.lab.at + in_s,
            end_at=self.lab.at + in_s + length_s,
            gpus=size,
            devices=() if named is None else (gpu(named),),
            every_s=every_s,
        )
        self.made[booking.id] = self.lab.at
        self.bookings[booking.id] = booking
        try:
            decisions = self.lab.send(BookingMade(at=self.lab.at, booking=booking))
        except UserError:
            del self.bookings[booking.id]
        else:
            self.judge(decisions)

    @precondition(lambda self: self.bookings)
    @rule(pick=picks, by_s=st.sampled_from([-3.0, 3.0]))
    def restate(self, pick: int, by_s: float) -> None:
        """The wall clock moves against the lab's."""
        booking = self.bookings[self.pick(self.bookings, pick)]
        for name, (span, _, _) in list(self.opened.items()):
            if span.end_at <= self.lab.at:
                del self.opened[name]
        moved = replace(booking, start_at=booking.start_at + by_s, end_at=booking.end_at + by_s)
        self.has_moved = True
        event = BookingMade(at=self.lab.at, booking=moved, is_restated=True)
        try:
            decisions = self.lab.send(event)
        except UserError:
            return
        self.bookings[booking.id] = moved
        self.made[booking.id] = self.lab.at
        if booking.id in self.opened:
            span = span_at(moved, self.lab.at)
            _, gpus, since = self.opened[booking.id]
            if span is None:
                del self.opened[booking.id]
            else:
                self.opened[booking.id] = (span, gpus, since)
        self.judge(decisions)

    @precondition(lambda self: self.bookings)
    @rule(pick=picks)
    def unbook(self, pick: int) -> None:
        booking = self.pick(self.bookings, pick)
        event = BookingCancelled(at=self.lab.at, booking=BookingId(booking), reason="rain")
        try:
            decisions = self.lab.send(event)
        except UserError:
            assert next(spans(self.bookings[booking], self.lab.state.at), None) is None
            decisions = []
        del self.bookings[booking]
        self.opened.pop(booking, None)
        self.judge(decisions)

    # --- what must hold --------------------------------------------------------------------

    def judge(self, decisions: list[Decision]) -> None:
        at = self.lab.state.at
        for booking, (span, _, _) in list(self.opened.items()):
            if span.end_at <= at:
                del self.opened[booking]
        for decision in decisions:
            match decision:
                case Grant():
                    self.judge_grant(decision)
                case OpenBooking():
                    self.judge_open(decision)
                case WarnOverstay():
                    assert decision.lease == self.lab.lease(decision.job)
                    assert self.made[decision.booking] <= at
                    self.overstays[decision.booking, decision.lease] = at
                case WarnUnused():
                    self.judge_unused(decision)
                    self.unused[decision.booking] = at
                case ReleaseBooking():
                    self.judge_unused(decision)
                    unused_s = self.lab.settings.booking_unused_s
                    assert unused_s is not None
                    assert at >= self.unused.pop(decision.booking) + unused_s / 2
                    assert at >= self.opened[decision.booking][2] + unused_s
                    span = self.opened.pop(decision.booking)[0]
                    self.released[decision.booking, span.start_at] = None
                case Preempt():
                    assert decision.booking is not None
                    self.judge_clearing(decision.booking, decision)
                    assert self.requests[decision.job][1].preemption == (decision.step,)
                    assert decision.job in self.started
                    self.preempted[decision.job] = ""
                case Stop() if decision.outcome is Outcome.KILLED:
                    warned = [one for one, lease in self.overstays if lease == decision.lease]
                    [booking] = [one for one in warned if self.holds(one, decision.job)]
                    warned_at = self.judge_clearing(booking, decision)
                    assert self.lab.settings.booking_stops
                    assert (
                        at
                        >= warned_at
                        + self.lab.settings.booking_warn_s
                        + self.lab.settings.booking_grace_s
                    )
                    self.preempted.pop(decision.job, None)
                case _:
                    self.judge_end(decision)

    def judge_open(self, decision: OpenBooking) -> None:
        booking = self.bookings[decision.booking]
        span = span_at(booking, decision.at)
        assert span is not None
        assert span.start_at == decision.start_at
        assert decision.booking not in self.opened
        assert len(set(decision.gpus)) == len(decision.gpus) <= booking.size
        assert not booking.devices or set(decision.gpus) <= set(booking.devices)
        others = {one for _, gpus, _ in self.opened.values() for one in gpus}
        assert not others & set(decision.gpus)
        devices = self.lab.state.devices.values()
        is_particular = any(one.devices for one in self.bookings.values())
        if not (self.has_moved or is_particular) and all(
            device.status != "missing" for device in devices
        ):
            assert len(decision.gpus) == booking.size, "the calendar promised them"
        self.opened[decision.booking] = (span, decision.gpus, decision.at)
        self.unused.pop(decision.booking, None)

    def holds(self, booking: str, job: str) -> bool:
        booked = self.opened.get(booking, (None, (), 0.0))[1]
        return bool(set(booked) & set(self.leased[job].gpus))

    def judge_clearing(self, booking: str, decision: Preempt | Stop) -> float:
        """Only others' jobs on its GPUs have to go, once it is on, and not unwarned."""
        assert booking in self.opened
        assert self.requests[decision.job][0] != self.bookings[booking].owner
        assert self.holds(booking, decision.job)
        return self.overstays[booking, decision.lease]

    def judge_unused(self, decision: WarnUnused | ReleaseBooking) -> None:
        owner = self.bookings[decision.booking].owner
        gpus = self.opened[decision.booking][1]
        for job, units in self.leased.items():
            assert self.requests[job][0] != owner or not set(units.gpus) & set(gpus)

    def judge_grant(self, grant: Grant) -> None:
        owner, request = self.requests[grant.job]
        for booking, (_, gpus, _) in self.opened.items():
            if self.bookings[booking].owner != owner:
                assert not set(gpus) & set(grant.units.gpus), f"{booking} has them"
        before = dict(self.leased)
        # Jobs that a booking keeps off do not start in the order of the queue.
        preempted, self.preempted = self.preempted, {"some": "booking"}
        super().judge_grant(grant)
        self.preempted = preempted
        own = [
            one
            for booking, (_, gpus, _) in self.opened.items()
            if self.bookings[booking].owner == owner
            for one in gpus
        ]
        # Whoever booked GPUs may use them until somebody else did, however long the job is.
        if request.preemption or self.has_moved or set(grant.units.gpus) <= set(own):
            return
        end = self.end_of(grant.job)
        until = grant.at + self.lab.settings.booking_shadow_s if end == NEVER else end
        for start in self.starts(grant.at, until):
            with_it = self.most_served(start, self.leased)
            assert with_it == self.most_served(start, before), f"it is in the way at {start}"

    def starts(self, at: float, until: float) -> Iterable[float]:
        for booking in self.bookings.values():
            for span in takewhile(lambda one: one.start_at < until, spans(booking, at)):
                if span.start_at > at:
                    yield span.start_at

    def most_served(self, at: float, leased: dict[str, Any]) -> int:
        """So many GPUs can bookings have at a time, if who gives way does and others stay."""
        stays: dict[Any, Any] = {}
        for job, units in leased.items():
            owner, request = self.requests[job]
            is_going = job in self.preempted or self.lab.job(job).state == "stopping"
            if not request.preemption and not is_going and self.end_of(job) > at:
                stays |= dict.fromkeys(units.gpus, owner)
        wants: dict[str, tuple[int, Any, tuple[Any, ...]]] = {}
        for name, booking in self.bookings.items():
            span = span_at(booking, at)
            if span is None or (name, span.start_at) in self.released:
                continue
            size, devices = booking.size, booking.devices
            if name in self.opened and self.opened[name][0] == span:
                devices = self.opened[name][1]
                size = len(devices)
            wants[name] = (size, booking.owner, devices)
        serving = [one.id for one in self.lab.state.devices.values() if one.status != "missing"]
        return self.search(serving, stays, wants)

    def search(self, left: list[Any], stays: dict[Any, Any], wants: dict[str, Any]) -> int:
        """Tries every way to give the GPUs to the bookings."""
        if not left:
            return 0
        device, *rest = left
        best = self.search(rest, stays, wants)
        for name, (size, owner, devices) in wants.items():
            if size and stays.get(device, owner) == owner and (not devices or device in devices):
                fewer = {**wants, name: (size - 1, owner, devices)}
                best = max(best, 1 + self.search(rest, stays, fewer))
        return best

    def end_of(self, job: str) -> float:
        request = self.requests[job][1]
        lengths = [one for one in (request.expected_s, request.time_limit_s) if one is not None]
        if not lengths:
            return NEVER
        at = self.lab.state.at
        ran = self.served.get(job, 0.0) + at - self.started.get(job, at)
        return at + max(min(lengths) - ran, 0.0)

    def judge_end(self, decision: Any) -> None:
        assert decision.outcome is not Outcome.KILLED
        super().judge_end(decision)


TestAnyCalendar = AnyCalendar.TestCase
TestAnyCalendar.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
