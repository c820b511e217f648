"""What must hold where GPUs are shared, split into slices, asked for by name and drained.

As in `test_properties`, the model knows nothing of `State`.
"""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from tests.core.builders import ALICE, BOB, GIB, gpu, seen
from tests.core.test_properties import AnyLab, owners, requests
from workbench.core.events import DeviceBusyOutside, DrainEnded, DrainStarted
from workbench.core.model import Request, Units
from workbench.core.settings import Settings
from workbench.policies import POLICIES

PROFILE = "1g.10gb"
WHOLE, SPLIT, SLICES = (0, 1, 2, 3), 4, (5, 6, 7)
MEMORY_GIB = dict(zip(range(8), (80, 80, 40, None, 80, 10, 10, 10), strict=True))
MODEL = ("A100", "A100", "RTX 3090", "RTX 3090", "A100", *("A100 MIG 1g.10gb",) * 3)
NODE = ("n0", "n0", "n0", "n0", "n1", "n1", "n1", "n1")
ISLAND = ("x", "y", "x", "y", "", "", "", "")
NAMES = (gpu(1)[:12].lower(), "rtx", "a100")

models = st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple)
kinds = st.one_of(
    st.fixed_dictionaries(
        {
            "gpus": st.just(1),
            "share_bytes": st.sampled_from([5 * GIB, 20 * GIB, 36 * GIB, 38 * GIB, 50 * GIB]),
            "models": models,
        }
    ),
    st.fixed_dictionaries({"gpus": st.integers(1, 4), "mig": st.sampled_from([PROFILE, "7g"])}),
    st.fixed_dictionaries({"gpus": st.integers(0, 5), "models": models}),
)
rules = st.builds(
    Settings,
    bound_s=st.none(),
    ageing_s=st.sampled_from([None, 6.0]),
    quantum_s=st.sampled_from([0.0, 4.0]),
    fair_share=st.booleans(),
)
any_request = st.builds(lambda request, kind: request | kind, requests, kinds)
numbers = st.integers(0, 7)


class AnyPlacement(AnyLab):
    """Two nodes: GPUs of two models on the one, a GPU and its slices on the other."""

    devices = 8

    @initialize(
        agents=st.sampled_from([(ALICE, BOB), (ALICE,)]),
        policy=st.sampled_from(sorted(POLICIES)),
        rules=rules,
        first=st.lists(st.tuples(owners, any_request), min_size=4, max_size=10),
        is_running=st.booleans(),
    )
    def open(
        self,
        agents: tuple[Any, ...],
        policy: str,
        rules: Settings,
        first: list[tuple[Any, dict[str, Any]]],
        *,
        is_running: bool,
    ) -> None:
        self.missing: dict[int, bool] = {}
        self.drained: dict[str, None] = {}
        super().open(agents=agents, policy=policy, rules=rules, first=first, is_running=is_running)

    # --- what happens ----------------------------------------------------------------------

    @rule(owner=owners, request=any_request)
    def submit(self, owner: Any, request: dict[str, Any]) -> None:
        super().submit(owner=owner, request=request)

    @rule(number=numbers)
    def see(self, number: int) -> None:
        self.usable[gpu(number)], self.missing[number] = True, False
        more: dict[str, Any] = {"model": MODEL[number], "node": NODE[number]}
        if number in SLICES:
            more |= {"mig": PROFILE, "parent": gpu(SPLIT)}
        fact = seen(
            self.lab.at, number, memory_gib=MEMORY_GIB[number], island=ISLAND[number], **more
        )
        self.judge(self.lab.send(fact))

    @rule(number=numbers, missing=st.booleans())
    def lose(self, number: int, *, missing: bool) -> None:
        self.usable[gpu(number)], self.missing[number] = False, missing
        self.judge(self.lab.lose(number, missing=missing))

    @rule()
    def lose_all_slices(self) -> None:
        for number in SLICES:
            self.lose(number=number, missing=True)

    @rule(number=numbers)
    def use_outside(self, number: int) -> None:
        self.usable[gpu(number)], self.missing[number] = False, False
        event = DeviceBusyOutside(at=self.lab.at, device=gpu(number), reason="uid 1009")
        self.judge(self.lab.send(event))

    @rule(node=st.sampled_from(["", "n0", "n1"]), is_drained=st.booleans())
    def drain(self, node: str, *, is_drained: bool) -> None:
        at = self.lab.at
        if is_drained:
            self.drained[node] = None
            self.judge(self.lab.send(DrainStarted(at=at, node=node, reason="new driver")))
        else:
            self.drained.pop(node, None)
            self.judge(self.lab.send(DrainEnded(at=at, node=node)))

    # --- what must hold --------------------------------------------------------------------

    def could_ever_fit(self, request: Request) -> bool:
        there = [*WHOLE, *SLICES, *([] if self.is_split() else [SPLIT])]
        if request.gpus == 0:
            return True
        return any(
            sum(will_do(number, request, name) for number in there) >= request.gpus
            for name in request.models or ("",)
        )

    def is_split(self) -> bool:
        held = self.held(list(self.leased.values()))
        return any(not self.missing[number] or gpu(number) in held for number in SLICES)

    def held(self, kept: list[Units]) -> dict[Any, int]:
        """What is declared of each GPU that is leased; all of it where it is leased alone."""
        held: dict[Any, int] = {}
        for units in kept:
            for device in units.gpus:
                held[device] = held.get(device, 0) + (units.share_bytes or 1 << 60)
        return held

    def may_lease(self, number: int) -> bool:
        if not self.usable[gpu(number)] or NODE[number] in self.drained:
            return False
        if number == SPLIT:
            return not self.is_split()
        return number not in SLICES or gpu(SPLIT) not in self.held(list(self.leased.values()))

    def fits(self, request: Request, leaving: list[str]) -> bool:
        return "" not in self.drained and super().fits(request, leaving)

    def gpus_fit(self, request: Request, kept: list[Units]) -> bool:
        held = self.held(kept)
        for name in request.models or ("",):
            good = [n for n in range(8) if will_do(n, request, name) and self.may_lease(n)]
            if request.share_bytes:
                if any(held.get(gpu(n), 0) + request.share_bytes <= shared(n) for n in good):
                    return True
            elif gang_fits(request.gpus, good, [n for n in good if gpu(n) not in held]):
                return True
        return False

    def judge_units(self, request: Request, granted: Units) -> None:
        held = self.held(list(self.leased.values()))
        chosen = [number for number in range(8) if gpu(number) in granted.gpus]
        assert "" not in self.drained
        assert granted.share_bytes == (request.share_bytes or 0)
        for number in chosen:
            assert self.may_lease(number)
            assert gpu(number) not in held or granted.share_bytes
        names = request.models or ("",)
        possible = [all(will_do(n, request, name) for n in chosen) for name in names]
        assert any(possible)
        if not request.models or not request.gpus:
            return
        kept = list(self.leased.values())
        for name in names[: possible.index(True)]:  # The preferred ones had no room.
            assert not self.gpus_fit(Request(**{**as_dict(request), "models": (name,)}), kept)

    @invariant()
    def no_unit_is_leased_twice_and_no_gpu_is_shared_beyond_its_margin(self) -> None:
        alone = [
            gpu for units in self.leased.values() if not units.share_bytes for gpu in units.gpus
        ]
        assert len(alone) == len(set(alone))
        shares: dict[Any, int] = {}
        for units in self.leased.values():
            if units.share_bytes:
                [device] = units.gpus
                assert device not in alone
                shares[device] = shares.get(device, 0) + units.share_bytes
        for number in range(8):
            assert shares.get(gpu(number), 0) <= shared(number)


def as_dict(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in Request.__dataclass_fields__}


def shared(number: int) -> int:
    """All but a twentieth."""
    return (MEMORY_GIB[number] or 0) * GIB * 19 // 20


def will_do(number: int, request: Request, name: str) -> bool:
    memory_bytes = (MEMORY_GIB[number] or 0) * GIB
    return (
        (PROFILE if number in SLICES else "") == (request.mig or "")
        and memory_bytes >= (request.gpu_memory_bytes or 0)
        and shared(number) >= (request.share_bytes or 0)
        and (name in MODEL[number].lower() or gpu(number).lower().startswith(name))
    )


def gang_fits(gpus: int, good: list[int], free: list[int]) -> bool:
    """On one node where one is large enough; else on one whole node and a part of the other."""
    sizes = [sum(NODE[n] == node for n in good) for node in ("n0", "n1")]
    left = [sum(NODE[n] == node for n in free) for node in ("n0", "n1")]
    if gpus <= max(sizes):
        return max(left) >= gpus
    return any(
        left[one] == sizes[one] and left[other] >= gpus - sizes[one]
        for one, other in ((0, 1), (1, 0))
    )


TestAnyPlacement = AnyPlacement.TestCase
TestAnyPlacement.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
