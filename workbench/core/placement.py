"""Which units a request gets: the smallest GPUs that are large enough, or a part of one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

from workbench.core.gangs import on_one_node, over_nodes
from workbench.core.job import Job
from workbench.core.matching import Choice, in_the_way, models_of, shared_bytes, will_do
from workbench.core.model import (
    DeviceId,
    DeviceStatus,
    JobState,
    Request,
    Shape,
    Units,
)
from workbench.core.state import THIS_HOST, Device, State


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
        models=request.models if request.gpus else (),
    )


def shapes_of(request: Request) -> tuple[Shape, ...]:
    """Lists what would do for a request.

    Args:
        request: Any request.

    Returns:
        Its shapes, the preferred first.
    """
    return (shape_of(request), *request.alternatives)


def shapes_wanted(job: Job) -> tuple[Shape, ...]:
    """Lists what would do for a waiting job.

    Args:
        job: A waiting job; a suspended one waits for its cores alone.

    Returns:
        Its shapes, the preferred first.
    """
    if job.ladder is not None and job.state is JobState.SUSPENDED:
        cores = job.ladder.granted.cores
        return (Shape(gpus=0, gpu_memory_bytes=0, cores=cores, memory_bytes=0),)
    return shapes_of(job.request)


def gpus_to_lease(state: State) -> list[Device]:
    """Lists the GPUs and slices that may be leased, whether a lease holds them now or not.

    Args:
        state: The state; it is not changed.

    Returns:
        Of `gpus_in_service`, in its order, those that are available, on no drained node, and no
        part of a card that is used in another way; none while dispatch is held.
    """
    if state.held is not None:
        return []
    return [
        gpu
        for gpu in gpus_in_service(state)
        if gpu.status is DeviceStatus.AVAILABLE
        and gpu.node not in state.drained
        and not any(in_the_way(state, gpu))
    ]


def gpus_in_service(state: State) -> list[Device]:
    """Lists the GPUs and slices that jobs of this host run on, busy and broken ones included.

    Simulated GPUs serve only a host without real ones, so that none is ever chosen in place of a
    real one and a gang never mixes the two.

    Args:
        state: The state; it is not changed.

    Returns:
        Real ones that are not missing or, if there is none, the simulated ones; smallest first
        (unknown memory last), then in the order in which they were first seen.
    """
    present = [gpu for gpu in state.devices.values() if gpu.status is not DeviceStatus.MISSING]
    serving = [gpu for gpu in present if not gpu.simulated] or present
    return sorted(serving, key=lambda gpu: (gpu.memory_bytes is None, gpu.memory_bytes or 0))


class Pool:
    """What may be handed out: GPUs and slices by node, parts of GPUs, cores and host memory.

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
        self._free: list[list[int]] = [[] for _ in names]
        for rank, node in enumerate(self._node_of):
            self._free[node].append(rank)
        self.free_gpus = len(gpus)
        self._room: dict[int, int] = {}
        islands = [(gpu.node, gpu.island) for gpu in gpus]
        known = {name: number for number, name in enumerate(dict.fromkeys(islands))}
        has_islands = any(gpu.island for gpu in gpus)
        self._islands = [known[name] for name in islands] if has_islands else None
        self._choices: dict[tuple[str, int, int, str], Choice] = {}
        self._any = self._choice(Shape(gpus=1, gpu_memory_bytes=0, cores=1, memory_bytes=0), "")

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
        if THIS_HOST in state.drained:  # As if it had nothing: what ends there frees nothing.
            pool = cls([], 0, 0)
        else:
            pool = cls(gpus_to_lease(state), state.host.cores, state.host.memory_bytes)
        pool.cores -= state.leased_cores
        pool.memory_bytes -= state.leased_memory_bytes
        for gpu in state.holders:
            pool._remove(gpu)
        for gpu, sharers in state.sharers.items():
            for sharer in sharers:
                pool._share(gpu, sharer.share_bytes)
        return pool

    def copy(self) -> Pool:
        """Returns an equal pool that may be changed apart from this one."""
        other = object.__new__(Pool)
        other.cores, other.memory_bytes = self.cores, self.memory_bytes
        other.free_gpus = self.free_gpus
        other._gpus, other._ranks = self._gpus, self._ranks
        other._node_of, other._islands = self._node_of, self._islands
        other._choices, other._any = self._choices, self._any
        other._free = [list(node) for node in self._free]
        other._room = self._room.copy()
        return other

    def restrict(self, may_be_leased: Callable[[DeviceId], bool]) -> None:
        """Has other GPUs not be leased, whether they are free or not.

        Args:
            may_be_leased: Which GPUs stay.
        """
        for gpu in self._ranks:
            if not may_be_leased(gpu):
                self._remove(gpu)
        self._ranks = {gpu: rank for gpu, rank in self._ranks.items() if may_be_leased(gpu)}

    def is_free(self, gpu: DeviceId) -> bool:
        """Tells whether a GPU is here and free.

        Args:
            gpu: Which.
        """
        rank = self._ranks.get(gpu)
        return rank is not None and rank in self._free[self._node_of[rank]]

    def take(self, units: Units) -> None:
        """Removes what was handed out; what is not in the pool is passed over.

        Args:
            units: A lease's.
        """
        if units.share_bytes:
            self._share(units.gpus[0], units.share_bytes)
        else:
            for gpu in units.gpus:
                self._remove(gpu)
        self.cores -= units.cores
        self.memory_bytes -= units.memory_bytes

    def give_back(self, units: Units) -> None:
        """Adds what comes back when a lease ends; GPUs that may not be leased stay out.

        Args:
            units: The lease's.
        """
        if units.share_bytes:
            self._unshare(units.gpus[0], units.share_bytes)
        else:
            for gpu in units.gpus:
                rank = self._ranks.get(gpu)
                if rank is not None:
                    insort(self._free[self._node_of[rank]], rank)
                    self.free_gpus += 1
        self.cores += units.cores
        self.memory_bytes += units.memory_bytes

    def set_apart(self, units: Units, coming: Sequence[Units]) -> None:
        """Removes what is free now of units of which the rest is yet to come back.

        A GPU that others leave is not free, but for shares: there the room that is set apart is
        what the leaving ones do not bring, and all of it where the GPU is wanted as a whole.

        Args:
            units: What somebody will get.
            coming: The units of those who leave for that.
        """
        if units.share_bytes:
            brought = sum(one.share_bytes for one in coming if one.gpus == units.gpus)
            self._share(units.gpus[0], max(units.share_bytes - brought, 0))
        else:
            for gpu in units.gpus:
                self._room.pop(self._ranks[gpu], None)
                self._remove(gpu)
        self.cores -= max(units.cores - sum(one.cores for one in coming), 0)
        self.memory_bytes -= max(units.memory_bytes - sum(one.memory_bytes for one in coming), 0)

    def _remove(self, gpu: DeviceId) -> bool:
        """Takes a free GPU out; tells whether it was free."""
        rank = self._ranks.get(gpu)
        if rank is None:
            return False
        node = self._free[self._node_of[rank]]
        at = bisect_left(node, rank)
        if at < len(node) and node[at] == rank:
            del node[at]
            self.free_gpus -= 1
            return True
        return False

    def _share(self, gpu: DeviceId, share_bytes: int) -> None:
        rank = self._ranks.get(gpu)
        if rank is None:
            return
        if rank in self._room:
            self._room[rank] -= share_bytes
        elif self._remove(gpu):
            self._room[rank] = shared_bytes(self._gpus[rank]) - share_bytes

    def _unshare(self, gpu: DeviceId, share_bytes: int) -> None:
        rank = self._ranks.get(gpu)
        if rank is None or rank not in self._room:
            return
        self._room[rank] += share_bytes
        if self._room[rank] >= shared_bytes(self._gpus[rank]):
            del self._room[rank]
            insort(self._free[self._node_of[rank]], rank)
            self.free_gpus += 1

    def suits(self, gpu: DeviceId, shape: Shape) -> bool:
        """Tells whether a GPU, free or not, could be one of those that a request gets.

        Args:
            gpu: Any.
            shape: What is asked for.
        """
        rank = self._ranks.get(gpu)
        return rank is not None and any(
            self._choice(shape, model).will_do[rank] for model in models_of(shape)
        )

    def beside(self, gpus: tuple[DeviceId, ...], shape: Shape, most: int) -> tuple[DeviceId, ...]:
        """Chooses free GPUs for a job that has some already.

        Args:
            gpus: Those that it has.
            shape: What it asked for.
            most: How many it may have then.

        Returns:
            On the nodes that it is on, where it would fit on one, and of the same entry of its
            models; none where one of its own may not be leased any more.
        """
        ranks = [rank for gpu in gpus if (rank := self._ranks.get(gpu)) is not None]
        if len(ranks) < len(gpus):
            return ()
        its_nodes = dict.fromkeys(self._node_of[rank] for rank in ranks)
        for choice in (self._choice(shape, model) for model in models_of(shape)):
            if all(choice.will_do[rank] for rank in ranks):
                others = [] if shape.gpus <= choice.largest else range(len(self._free))
                nodes = dict.fromkeys((*its_nodes, *others))
                free = [rank for node in nodes for rank in self._free[node]]
                more = [rank for rank in free if choice.will_do[rank]]
                return tuple(self._gpus[rank].id for rank in more[: max(most - len(gpus), 0)])
        return ()

    def may_fit(self, shape: Shape) -> bool:
        """Tells whether there is as much as is asked for, wherever it is.

        Args:
            shape: What is asked for.

        Returns:
            False only where `place` finds nothing.
        """
        return (
            (shape.gpus <= self.free_gpus or bool(shape.share_bytes and self._room))
            and shape.cores <= self.cores
            and shape.memory_bytes <= max(self.memory_bytes, 0)
        )

    def place(self, shape: Shape) -> Units | None:
        """Chooses units for a request: on the fullest node that has room, best fit first.

        Args:
            shape: What is asked for.

        Returns:
            The units, all at once; None where not all of them are free. A gang that fits on one
            node gets one node; a larger one gets whole nodes and the rest on one more. A gang is
            of one entry of its models. A share goes to the fullest GPU that still has room.
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
            share_bytes=shape.share_bytes,
        )

    def _choose(self, shape: Shape) -> list[int] | None:
        if not (shape.gpu_memory_bytes or shape.share_bytes or shape.mig or shape.models):
            return self._of(self._any, shape.gpus)
        for model in models_of(shape):
            choice = self._choice(shape, model)
            ranks = self._fullest(shape, choice) if shape.share_bytes and self._room else None
            if ranks is None:
                ranks = self._of(choice, shape.gpus)
            if ranks is not None:
                return ranks
        return None

    def _of(self, choice: Choice, gpus: int) -> list[int] | None:
        """Chooses GPUs that nobody has."""
        free = self._free
        if not choice.is_all:
            free = [[rank for rank in node if choice.will_do[rank]] for node in free]
        if len(free) == 1 or gpus <= choice.largest:
            return on_one_node(free, gpus, self._islands)
        return over_nodes(free, gpus, choice.sizes, self._islands)

    def _fullest(self, shape: Shape, choice: Choice) -> list[int] | None:
        """Chooses the shared GPU with the least room that is enough."""
        with_room = (
            (room, rank)
            for rank, room in self._room.items()
            if room >= shape.share_bytes and choice.will_do[rank]
        )
        best = min(with_room, default=None)
        return None if best is None else [best[1]]

    def _choice(self, shape: Shape, model: str) -> Choice:
        """Finds the units that will do; once, as long as the lab stays what it is."""
        kind = shape.mig, shape.gpu_memory_bytes, shape.share_bytes, model
        known = self._choices.get(kind)
        if known is None:
            good = [will_do(gpu, shape, model) for gpu in self._gpus]
            sizes = [0] * len(self._free)
            for node, is_good in zip(self._node_of, good, strict=True):
                sizes[node] += is_good
            known = Choice(all(good), good, sizes, max(sizes, default=0))
            self._choices[kind] = known
        return known
