"""torch tensors: they cross as numpy arrays over the same memory. Loaded only where torch is.

So tensors share memory, with one another and with arrays, as arrays do; and what changes in place
is seen, and written back, in that memory. A tensor of a GPU comes back on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from workbench.boundary.containers import Facet
from workbench.boundary.errors import Refused
from workbench.boundary.hidden_state import attributes_facet
from workbench.boundary.libraries import Run, Scene

_PLAIN_TYPES: Final = {
    1: torch.uint8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
    16: torch.complex128,
}
"""Bytes an item → a type of items that numpy has too."""

_Seen = tuple[Any, ...]


def reducer_for(cls: type, run: Run) -> Callable[[Any], Any] | None:
    """Returns what reduces tensors of a type; None for what is not torch's.

    Args:
        cls: The type.
        run: The pass of pickling.
    """
    if issubclass(cls, torch.Tensor):
        return lambda value: _reduce_tensor(value, run)
    if issubclass(cls, torch.Generator):
        return _reduce_generator
    if issubclass(cls, torch.UntypedStorage | torch.TypedStorage):
        return _refuse_storage
    return None


def facets_for(cls: type, scene: Scene) -> tuple[Facet, ...] | None:
    """Returns what can change in a tensor or generator; None for what is not torch's."""
    if issubclass(cls, torch.Generator):
        return (_GENERATOR,)
    if not issubclass(cls, torch.Tensor):
        return None
    return (_TENSOR, attributes_facet(scene.fingerprints))


def make_tensor(cls: type, items: Any, dtype: torch.dtype, requires_grad: bool) -> Any:  # noqa: FBT001
    """Returns a tensor over an array's memory."""
    plain = torch.from_numpy(items).view(dtype)
    if cls is torch.Tensor:
        return plain.requires_grad_(requires_grad)
    return torch.Tensor._make_subclass(cls, plain, requires_grad)  # noqa: SLF001  (as torch unpickles)


def set_tensor(value: torch.Tensor, state: tuple[torch.Tensor | None, dict[str, Any]]) -> None:
    """Gives a tensor its gradient and its attributes."""
    value.grad, own = state
    value.__dict__.update(own)


def make_generator(state: bytes) -> torch.Generator:
    """Returns a random generator of the CPU."""
    generator = torch.Generator()
    put_generator(generator, (state,))
    return generator


def put_generator(value: torch.Generator, state: tuple[bytes]) -> None:
    """Sets a random generator's state."""
    value.set_state(torch.frombuffer(bytearray(state[0]), dtype=torch.uint8))


def default_generator() -> torch.Generator:
    """Returns this process's generator; its state travels with the process's."""
    return torch.default_generator


def _reduce_tensor(value: torch.Tensor, run: Run) -> Any:
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        raise Refused("is not a dense tensor", "Pass on it.to_dense()")
    if value.is_conj() or value.is_neg() or value.device.type == "meta":
        raise Refused("has no memory of its own", "Pass on it.resolve_conj().resolve_neg()")
    plain = value.detach()
    if value.device.type != "cpu":
        if run.outbound:
            raise Refused(
                f"lies on {value.device}, which the kernel of a scheduled cell never touches",
                "Pass on it.cpu(), or make it in the cell",
            )
        run.notes["what lay on a GPU came back on the CPU"] = None
        plain = plain.cpu()
    requires_grad = value.requires_grad
    if not value.is_leaf:
        if run.outbound:
            raise Refused(
                "is part of an autograd graph, which cannot cross",
                "Compute it in the same cell, or pass on it.detach()",
            )
        run.notes["tensors came back without the autograd graph that they were part of"] = None
        requires_grad = False
    assert run.memory is not None, "torch is used with numpy"
    items = run.memory.stand_in(value, "tensor", lambda: _as_array(plain))
    args = (type(value), items, value.dtype, requires_grad)
    grad = value.grad if value.is_leaf else None
    return make_tensor, args, (grad, value.__dict__), None, None, set_tensor


def _as_array(plain: torch.Tensor) -> Any:
    dense = plain.as_subclass(torch.Tensor)
    return dense.view(_PLAIN_TYPES[plain.element_size()]).numpy()


def _reduce_generator(value: torch.Generator) -> Any:
    if value is torch.default_generator:
        return default_generator, ()
    if value.device.type != "cpu":
        raise Refused(f"draws on {value.device}", "Make it in the cell that uses it")
    return make_generator, (_generator_state(value),)


def _refuse_storage(_: Any) -> Any:
    raise Refused("is the memory of a tensor", "Pass on the tensor itself")


def _generator_state(value: torch.Generator) -> bytes:
    return bytes(value.get_state().numpy())


def _generator_difference(value: torch.Generator, before: bytes) -> tuple[bytes] | None:
    now = _generator_state(value)
    return None if now == before else (now,)


def _see_tensor(value: torch.Tensor) -> _Seen:
    where = (value.data_ptr(), value.shape, value.stride(), value.dtype, value.device)
    grad = value.grad if value.is_leaf else None
    return where, value.requires_grad and value.is_leaf, grad


def _tensor_difference(value: torch.Tensor, before: _Seen) -> _Seen | None:
    where, requires_grad, grad = _see_tensor(value)
    where_before, requires_grad_before, grad_before = before
    is_moved = where != where_before
    if not is_moved and requires_grad == requires_grad_before and grad is grad_before:
        return None
    return value.detach() if is_moved else None, requires_grad, grad


def put_tensor(value: torch.Tensor, state: _Seen) -> None:
    """Gives a tensor other memory where it moved, and its gradient."""
    data, requires_grad, grad = state
    value.grad = None
    if data is not None:
        value.data = data
    value.requires_grad_(requires_grad)
    value.grad = grad


_TENSOR: Final = Facet(take=_see_tensor, difference=_tensor_difference, put=put_tensor)
_GENERATOR: Final = Facet(
    take=_generator_state, difference=_generator_difference, put=put_generator
)
