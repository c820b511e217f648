"""What of a cell's exception can come back, where something in it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from workbench.boundary.cell_error import describe
from workbench.boundary.errors import RemoteError
from workbench.boundary.exceptions import (
    State,
    has_foreign_layout,
    make_exception,
    recipe_of,
    set_exception,
    state_of,
)

_NOTES: Final = "__notes__"
_SHOWN_CHARACTERS: Final = 500
_SEQUENCES: Final = (tuple, list)


class LeftBehind:
    """Stands where something that could not come back has to be something.

    Args:
        text: How that showed itself.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class Pared:
    """Stands for an exception that is pickled without some of what it holds.

    Attributes:
        recipe: What makes it, and out of what.
        state: What it is given.
    """

    recipe: tuple[Any, Any]
    state: State

    def __reduce_ex__(self, _: Any) -> Any:
        """Reduces it as the exception that it stands for."""
        return *self.recipe, self.state, None, None, set_exception


class Paring:
    """Pares exceptions: the one that was raised, its members, and those that it arose from.

    Args:
        why_not: Value → why it cannot come back; empty where it can.
        keeps_links: Whether what an exception arose from comes too.

    Attributes:
        notes: What was left behind, in sentences; each is a note of its exception too.
    """

    def __init__(self, why_not: Callable[[Any], str], *, keeps_links: bool) -> None:
        self.notes: list[str] = []
        self._why_not = why_not
        self._keeps_links = keeps_links
        self._pared: dict[int, Pared] = {}

    def pare(self, error: BaseException) -> Pared:
        """Returns what is pickled in an exception's stead; the same one whenever it is met."""
        pared = self._pared.get(id(error))
        if pared is None:
            pared = self._pared[id(error)] = Pared()
            if why := self._why_not_its_type(error):
                self._replace(error, pared, why)
            else:
                self._strip(error, pared)
        return pared

    def _strip(self, error: BaseException, pared: Pared) -> None:
        left: list[str] = []
        own, slots, fields, args, links = state_of(error)
        make, made_from = recipe_of(error)
        if make is make_exception:  # Of a group's members some may have to be pared.
            made_from = self._stand_in(made_from, "", left)
        keeps_place = hasattr(type(error), "__getattr__")  # It may well look for what is not there.
        own = self._keep(own, left, keeps_place=keeps_place)
        slots = self._keep(slots, left, keeps_place=keeps_place)
        fields = {name: self._stand_in(one, f".{name}", left) for name, one in fields.items()}
        args = self._stand_in(args, "args", left)
        if any(links[:2]) and not self._keeps_links:
            left.append("what it arose from")
        if left:
            note = f"{type(error).__qualname__} came back without {', '.join(left)}"
            own = self._annotated(own, note)
        pared.recipe = make, made_from
        pared.state = own, slots, fields, args, self._linked(links)

    def _replace(self, error: BaseException, pared: Pared, why: str) -> None:
        """Has a `RemoteError` come in an exception's place, as its type cannot."""
        own, _, _, _, links = state_of(error)
        remote = RemoteError(describe(error))
        kept = self._keep({name: own[name] for name in own if name == _NOTES}, [])
        note = f"{type(error).__qualname__} could not itself come back: {why}"
        own = self._annotated({**vars(remote), **kept}, note)
        pared.recipe = make_exception, (RemoteError, ())
        pared.state = own, {}, {}, remote.args, self._linked(links)

    def _why_not_its_type(self, error: BaseException) -> str:
        cls = type(error)
        if why := self._why_not(cls):
            return why
        return self._why_not(recipe_of(error)) if has_foreign_layout(cls) else ""

    def _annotated(self, own: dict[str, Any], note: str) -> dict[str, Any]:
        self.notes.append(note)
        return {**own, _NOTES: [*own.get(_NOTES, ()), note]}

    def _linked(self, links: tuple[Any, ...]) -> tuple[Any, ...]:
        *arose_from, is_hidden = links
        if not self._keeps_links:
            return None, None, is_hidden
        return *(self.pare(one) if self._is_to_pare(one) else one for one in arose_from), is_hidden

    def _is_to_pare(self, value: Any) -> bool:
        return issubclass(type(value), BaseException) and bool(self._why_not(value))

    def _keep(
        self, attributes: dict[str, Any], left: list[str], *, keeps_place: bool = False
    ) -> dict[str, Any]:
        """Returns the attributes that can come back; exceptions among them pared."""
        kept: dict[str, Any] = {}
        for name, value in attributes.items():
            if self._is_to_pare(value):
                kept[name] = self.pare(value)
            elif why := self._why_not(value):
                left.append(f".{name} ({why})")
                if keeps_place:
                    kept[name] = LeftBehind(_shown(value))
            else:
                kept[name] = value
        return kept

    def _stand_in(self, value: Any, where: str, left: list[str]) -> Any:
        """Returns a value in which something else stands for what cannot come back."""
        if not (why := self._why_not(value)):
            return value
        if issubclass(type(value), BaseException):
            return self.pare(value)
        if type(value) in _SEQUENCES:
            parts = [
                self._stand_in(one, f"{where}[{index}]", left) for index, one in enumerate(value)
            ]
            return type(value)(parts)
        left.append(f"{where} ({why})")
        return LeftBehind(_shown(value))


def _shown(value: Any) -> str:
    try:
        return repr(value)[:_SHOWN_CHARACTERS]
    except Exception:  # noqa: BLE001  (the user's own __repr__)
        return f"<{type(value).__qualname__}>"
