"""The files that cross: a JSON manifest, a body of pickle streams, and large buffers beside it.

    magic | version | manifest length | body length | manifest | body | padding | buffers

The buffers stand in the same file (a result) or in a file of their own (inputs).
"""

from __future__ import annotations

import json
import mmap
import os
import pickle
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from workbench.boundary.errors import BrokenTransfer

VERSION: Final = 1
ALIGNMENT: Final = 64
_HEADER: Final = struct.Struct("<8sIQQ")
_MAGIC: Final = b"wbparcel"
_PYTHON: Final = sys.implementation.cache_tag or sys.implementation.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What is about to be written.

    Attributes:
        manifest: What the reader must know before it loads the body; JSON.
        body: The pickle streams.
        buffers: The memory that the streams refer to, in order.
    """

    manifest: Mapping[str, Any]
    body: bytes
    buffers: Sequence[pickle.PickleBuffer]

    def write(self, path: Path, buffers_path: Path | None = None) -> None:
        """Writes the parcel, readable by its owner alone.

        Args:
            path: The file.
            buffers_path: Where the buffers go; None for the end of the same file.
        """
        table, _ = _lay_out(self.buffers)
        manifest = json.dumps({**self.manifest, "python": _PYTHON, "buffers": table}).encode()
        with _create(path) as file:
            file.write(_HEADER.pack(_MAGIC, VERSION, len(manifest), len(self.body)))
            file.write(manifest)
            file.write(self.body)
            if buffers_path is None:
                file.write(bytes(-file.tell() % ALIGNMENT))
                _write_buffers(file, self.buffers)
                file.flush()
                os.fsync(file.fileno())
        if buffers_path is not None:
            with _create(buffers_path) as file:
                _write_buffers(file, self.buffers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What was read.

    Attributes:
        manifest: As it was written.
        body: The pickle streams.
        buffers: The buffers in order: views of `private`.
        private: The file of the buffers; a write to it stays in this process.
        whole: The same file as it is on disk.
    """

    manifest: Mapping[str, Any]
    body: bytes
    buffers: Sequence[memoryview]
    private: memoryview
    whole: memoryview


def receive(path: Path, buffers_path: Path | None = None) -> Received:
    """Reads a parcel; its buffers are mapped, not read.

    Args:
        path: The file.
        buffers_path: Where the buffers are, mapped privately and writable; None where they stand
            in the same file, mapped read-only.

    Returns:
        The parcel.

    Raises:
        BrokenTransfer: The file is absent, cut short, of another version or another Python.
    """
    try:
        with path.open("rb") as file:
            manifest, body = _read_head(file, path)
            start = file.tell() + -file.tell() % ALIGNMENT
            whole = _map(file, mmap.MAP_SHARED, mmap.PROT_READ)
        private = whole
        if buffers_path is not None:
            start = 0
            with buffers_path.open("rb") as file:
                whole = _map(file, mmap.MAP_SHARED, mmap.PROT_READ)
                private = _map(file, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    except OSError as problem:
        raise BrokenTransfer(
            f"{path} cannot be read: {problem.strerror}", next_step="Run the cell again"
        ) from problem
    table = manifest["buffers"]
    if table and len(whole) < start + sum(table[-1]):
        raise _cut_short(buffers_path or path)
    return Received(
        manifest=manifest,
        body=body,
        buffers=_slices(private, table, start),
        private=private,
        whole=whole,
    )


def _read_head(file: BinaryIO, path: Path) -> tuple[dict[str, Any], bytes]:
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        raise _cut_short(path)
    magic, version, manifest_length, body_length = _HEADER.unpack(head)
    if magic != _MAGIC or version != VERSION:
        raise BrokenTransfer(
            f"{path} is of format {magic!r} {version}, this Workbench reads {_MAGIC!r} {VERSION}",
            next_step="Restart the kernel, so that both sides run the same Workbench",
        )
    rest = file.read(manifest_length + body_length)
    if len(rest) < manifest_length + body_length:
        raise _cut_short(path)
    manifest: dict[str, Any] = json.loads(rest[:manifest_length])
    if manifest["python"] != _PYTHON:
        raise BrokenTransfer(
            f"{path} was written by {manifest['python']}, this process is {_PYTHON}",
            next_step="Run the cell again from a kernel of the same environment",
        )
    return manifest, rest[manifest_length:]


def _cut_short(path: Path) -> BrokenTransfer:
    return BrokenTransfer(f"{path} is cut short", next_step="Run the cell again")


def _create(path: Path) -> BinaryIO:
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _lay_out(buffers: Iterable[pickle.PickleBuffer]) -> tuple[list[tuple[int, int]], int]:
    table: list[tuple[int, int]] = []
    end = 0
    for buffer in buffers:
        start = end + -end % ALIGNMENT
        length = buffer.raw().nbytes
        table.append((start, length))
        end = start + length
    return table, end


def _write_buffers(file: BinaryIO, buffers: Iterable[pickle.PickleBuffer]) -> None:
    end = 0
    for buffer in buffers:
        file.write(bytes(-end % ALIGNMENT))
        file.write(buffer.raw())
        end += -end % ALIGNMENT + buffer.raw().nbytes


def _map(file: BinaryIO, flags: int, protection: int) -> memoryview:
    if os.fstat(file.fileno()).st_size == 0:
        return memoryview(b"")
    return memoryview(mmap.mmap(file.fileno(), 0, flags=flags, prot=protection))


def _slices(view: memoryview, table: Iterable[Sequence[int]], start: int) -> list[memoryview]:
    return [view[start + at : start + at + length] for at, length in table]
