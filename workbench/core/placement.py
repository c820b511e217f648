"""Which units a request gets: whole GPUs, the smallest that are large enough."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from workbench.core.job import Job
from workbench.core.model import DeviceId, DeviceStatus, JobState, Request, Shape, Units
from workbench.core.state import Device, State


def shape_of(request: Request) -> Shape:
    """Takes from a request what placement looks at first.

    Args:
        request: Any request.

    Returns:
        Its shape; 0 stands for what it does not ask for.
    """
    return Shape(
        gpus=request.gpus,
        gpu_memory_bytes=(request.gpu_memory_bytes or 0) if request.gpus else 0,
        cores=request.cores,
        memory_bytes=request.memory_bytes or 0,
        share_bytes=request.share_bytes or 0,
        mig=request.mig or "",
        models=request.models,
    )


def shape_wanted(job: Job) -> Shape:
    """Takes from a waiting job what placement looks at.

    Args:
        job: A waiting job; a suspended one waits for its cores alone.

    Returns:
        Its shape.
    """
    if job.ladder is not None and job.state is JobState.SUSPENDED:
        return Shape(gpus=0, gpu_memory_bytes=0, cores=job.ladder.granted.cores, memory_bytes=0)
    return shape_of(job.request)


def is_large_enough(device: Device, gpu_memory_bytes: int) -> bool:
    """Tells whether a GPU has this much memory in all.

    Args:
        device: The GPU.
        gpu_memory_bytes: What is asked for; 0 for any.

    Returns:
        False where its memory is unknown and some is asked for.
    """
    return gpu_memory_bytes == 0 or (
        device.memory_bytes is not None and device.memory_bytes >= gpu_memory_bytes
    )


def gpus_to_lease(state: State) -> list[Device]:
    """Lists the GPUs that may be leased, whether a lease holds them now or not.

    Args:
        state: The state; it is not changed.

    Returns:
        The available ones of `gpus_in_service`, in its order; none while dispatch is held.
    """
    if state.held is not None:
        return []
    return [gpu for gpu in gpus_in_service(state) if gpu.status is DeviceStatus.AVAILABLE]


def gpus_in_service(state: State) -> list[Device]:
    """Lists the GPUs that jobs of this host run on, busy and broken ones included.

    Simulated GPUs serve only a host without real ones, so that none is ever chosen in place of a
    real one and a gang never mixes the two.

    Args:
        state: The state; it is not changed.

    Returns:
        Real GPUs that are not missing or, if there is none, the simulated ones; smallest first
        (unknown memory last), then in the order in which they were first seen.
    """
    present = [gpu for gpu in state.devices.values() if gpu.status is not DeviceStatus.MISSING]
    serving = [gpu for gpu in present if not gpu.simulated] or present
    return sorted(serving, key=lambda gpu: (gpu.memory_bytes is None, gpu.memory_bytes or 0))


class Pool:
    """What may be handed out: whole GPUs by node, cores and host memory.

    The scheduler keeps one in step with the state; planners work on copies.

    Args:
        gpus: Those that may be leased, whether they are free or not, in the order of preference.
        cores: Free ones; negative where the host shrank below what is leased.
        memory_bytes: Likewise.
    """

    def __init__(self, gpus: Sequence[Device], cores: int, memory_bytes: int) -> None:
        self.cores = cores
        self.memory_bytes = memory_bytes
        self._gpus = gpus
        self._ranks = {gpu.id: rank for rank, gpu in enumerate(gpus)}
        names = list(dict.fromkeys(gpu.node for gpu in gpus))
        numbers = {name: number for number, name in enumerate(names)}
        self._node_of = [numbers[gpu.node] for gpu in gpus]
        self._sizes = [self._node_of.count(number) for number in range(len(names))]
        self._free: list[list[int]] = [[] for _ in names]
        for rank, node in enumerate(self._node_of):
            self._free[node].append(rank)
        self.free_gpus = len(gpus)

    @classmethod
    def of(cls, state: State) -> Pool:
        """Finds what may be handed out now.

        Args:
            state: The state; it is not changed.

        Returns:
            A pool of the caller's own.
        """
        if state.host is None:
            return cls([], 0, 0)
        pool = cls(gpus_to_lease(state), state.host.cores, state.host.memory_bytes)
        pool.cores -= state.leased_cores
        pool.memory_bytes -= state.leased_memory_bytes
        for gpu in state.holders:
            pool._remove(gpu)
        return pool

    def copy(self) -> Pool:
        """Returns an equal pool that may be changed apart from this one."""
        other = object.__new__(Pool)
        other.cores, other.memory_bytes = self.cores, self.memory_bytes
        other.free_gpus = self.free_gpus
        other._gpus, other._ranks = self._gpus, self._ranks
        other._node_of, other._sizes = self._node_of, self._sizes
        other._free = [list(node) for node in self._free]
        return other

    def take(self, units: Units) -> None:
        """Removes what was handed out; what is not in the pool is passed over.

        Args:
            units: A lease's.
        """
        for gpu in units.gpus:
            self._remove(gpu)
        self.cores -= units.cores
        self.memory_bytes -= units.memory_bytes

    def give_back(self, units: Units) -> None:
        """Adds what comes back when a lease ends; GPUs that may not be leased stay out.

        Args:
            units: The lease's.
        """
        for gpu in units.gpus:
            rank = self._ranks.get(gpu)
            if rank is not None:
                insort(self._free[self._node_of[rank]], rank)
                self.free_gpus += 1
        self.cores += units.cores
        self.memory_bytes += units.memory_bytes

    def _remove(self, gpu: DeviceId) -> None:
        rank = self._ranks.get(gpu)
        if rank is None:
            return
        node = self._free[self._node_of[rank]]
        at = bisect_left(node, rank)
        if at < len(node) and node[at] == rank:
            del node[at]
            self.free_gpus -= 1

    def suits(self, gpu: DeviceId, shape: Shape) -> bool:
        """Tells whether a GPU, free or not, could be one of those that a request gets.

        Args:
            gpu: Any.
            shape: What is asked for.
        """
        rank = self._ranks.get(gpu)
        return rank is not None and self._is_large(rank, shape)

    def beside(self, gpus: tuple[DeviceId, ...], shape: Shape, most: int) -> tuple[DeviceId, ...]:
        """Chooses free GPUs for a job that has some already.

        Args:
            gpus: Those that it has.
            shape: What it asked for.
            most: How many it may have then.

        Returns:
            On the nodes that it is on, where it would fit on one; none where one of its own may
            not be leased any more.
        """
        ranks = [rank for gpu in gpus if (rank := self._ranks.get(gpu)) is not None]
        if len(ranks) < len(gpus):
            return ()
        its_nodes = dict.fromkeys(self._node_of[rank] for rank in ranks)
        others = [] if shape.gpus <= max(self._sizes) else range(len(self._free))
        nodes = dict.fromkeys((*its_nodes, *others))
        free = [rank for node in nodes for rank in self._free[node] if self._is_large(rank, shape)]
        return tuple(self._gpus[rank].id for rank in free[: most - len(gpus)])

    def may_fit(self, shape: Shape) -> bool:
        """Tells whether there is as much as is asked for, wherever it is.

        Args:
            shape: What is asked for.

        Returns:
            False only where `place` finds nothing.
        """
        return (
            shape.gpus <= self.free_gpus
            and shape.cores <= self.cores
            and shape.memory_bytes <= max(self.memory_bytes, 0)
        )

    def place(self, shape: Shape) -> Units | None:
        """Chooses units for a request: on the fullest node that has room, best fit first.

        Args:
            shape: What is asked for.

        Returns:
            The units, all at once; None where not all of them are free. A gang that fits on one
            node gets one node; a larger one gets whole nodes and the rest on one more.
        """
        if not self.may_fit(shape):
            return None
        ranks = self._choose(shape) if shape.gpus else []
        if ranks is None:
            return None
        return Units(
            gpus=tuple(self._gpus[rank].id for rank in ranks),
            cores=shape.cores,
            memory_bytes=shape.memory_bytes,
        )

    def _choose(self, shape: Shape) -> list[int] | None:
        free = self._free
        if shape.gpu_memory_bytes:
            free = [[rank for rank in node if self._is_large(rank, shape)] for node in free]
        if len(free) == 1 or shape.gpus <= max(self._sizes):
            return _on_one_node(free, shape.gpus)
        chosen: list[int] = []
        left = list(free)
        for number in sorted(range(len(free)), key=lambda node: -self._sizes[node]):
            size = self._sizes[number]
            if size <= shape.gpus - len(chosen) and len(free[number]) == size:
                chosen += free[number]
                left[number] = []
        rest = _on_one_node(left, shape.gpus - len(chosen))
        return None if rest is None else chosen + rest

    def _is_large(self, rank: int, shape: Shape) -> bool:
        return is_large_enough(self._gpus[rank], shape.gpu_memory_bytes)


def _on_one_node(free: list[list[int]], gpus: int) -> list[int] | None:
    """Takes GPUs from the node that has the fewest to spare."""
    best: list[int] | None = None
    for node in free:
        if len(node) >= gpus and (best is None or len(node) < len(best)):
            best = node
    return None if best is None else best[:gpus]
