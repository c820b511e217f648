"""Tells whether an object is still as it was, by what pickle says of it."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cloudpickle import cloudpickle

from workbench.boundary.deep import dump, dump_deeply


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Takes fingerprints of what did not itself come under a number.

    Attributes:
        by_id: The objects that came, by id. Each is compared for itself; within another one it
            counts by its identity alone.
    """

    by_id: Mapping[int, Any]

    def of(self, value: Any) -> bytes | None:
        """Returns a digest of a value and all in it; None where pickle has nothing to say."""
        if id(value) in self.by_id:
            return b""
        try:
            try:
                return self._print(value, dump)
            except RecursionError:
                return self._print(value, dump_deeply)
        except Exception:  # noqa: BLE001  (pickling runs the user's own code)
            return None

    def _print(self, value: Any, dump_with: Callable[[pickle.Pickler, Any], None]) -> bytes:
        digest = hashlib.blake2b()
        file = io.BytesIO()
        printer = _Printer(file, lambda buffer: digest.update(buffer.raw()))
        printer.known = self.by_id
        dump_with(printer, value)
        digest.update(file.getvalue())
        return digest.digest()


class _Printer(cloudpickle.Pickler):  # type: ignore[misc]
    known: Mapping[int, Any]

    def __init__(self, file: io.BytesIO, see: Callable[[pickle.PickleBuffer], None]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=see)

    def persistent_id(self, value: Any) -> int | None:
        return id(value) if id(value) in self.known else None
