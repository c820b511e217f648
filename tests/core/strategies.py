"""What Hypothesis makes up: requests, a lab's rules, and who and what an event is about."""

from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from tests.core.builders import ALICE, BOB, GIB
from tests.core.judges import GPUS
from workbench.core.model import Preemption, PriorityClass
from workbench.core.settings import Quota, Settings

LADDERS = [steps for number in range(5) for steps in combinations(Preemption, number)]
LADDERS += 16 * [tuple(Preemption), (Preemption.SUSPEND,)]
"""Any, and often those with the milder steps: those come up where much goes together."""


def elastic(request: dict[str, Any]) -> dict[str, Any]:
    return {**request, "min_gpus": max(request["gpus"] - 2, 1)}


def rigid(request: dict[str, Any]) -> dict[str, Any]:
    """A job without GPUs cannot say how few will do."""
    steps = [step for step in request["preemption"] if step is not Preemption.SHRINK]
    return {**request, "preemption": tuple(steps)}


requests = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(PriorityClass),
        "gpus": st.integers(0, 3),
        "cores": st.integers(1, 4),
        "memory_bytes": st.sampled_from([None, 4 * GIB, 9 * GIB]),
        "gpu_memory_bytes": st.sampled_from([None, 30 * GIB, 60 * GIB]),
        "time_limit_s": st.sampled_from([None, 5.0, 20.0]),
        "wait_limit_s": st.sampled_from([None, 5.0, 20.0]),
        "expected_s": st.sampled_from([None, 3.0, 30.0]),
        "preemption": st.sampled_from(LADDERS),
    }
).map(lambda request: elastic(request) if request["gpus"] else rigid(request))

rules = st.builds(
    Settings,
    bound_s=st.sampled_from([None, 10.0]),
    ageing_s=st.sampled_from([None, 6.0]),
    quantum_s=st.sampled_from([0.0, 4.0]),
    restart_s=st.sampled_from([0.0, 2.0]),
    fair_share=st.booleans(),
    high=st.just(Quota()),
)
owners = st.sampled_from([ALICE, BOB])
numbers = st.integers(0, GPUS - 1)
picks = st.integers(0, 1000)
