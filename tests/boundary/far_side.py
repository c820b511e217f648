"""The other process of these tests: plays the home, with one fork for each cell.

It reads a line of JSON for each cell on its input and answers with one line: empty, or a traceback
of the boundary itself.
"""

import ast
import contextlib
import importlib
import io
import json
import os
import signal
import sys
import traceback
import types
from pathlib import Path
from typing import Any

from workbench.boundary import CellError, unpack


def run_cell(directory: Path, cell: str, *, name_nothing: bool) -> None:
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    namespace: dict[str, Any] = vars(main)
    arrival = unpack(directory, namespace)
    before = dict(namespace)
    error = None
    try:
        for statement in ast.parse(cell).body:
            code = compile(ast.Module([statement], []), "<cell>", "exec")
            exec(code, namespace)
    except BaseException as raised:  # noqa: BLE001  (whatever the cell raises is its result)
        error = CellError(exception=raised, traceback_lines=traceback.format_exception(raised))
    namespace.pop("__builtins__", None)
    names = [name for name, value in namespace.items() if before.get(name, before) is not value]
    deleted = [name for name in before if name not in namespace]
    if name_nothing:
        names, deleted = [], []
    arrival.pack_back(directory, names=names, deleted=deleted, error=error)


def answer(request: dict[str, Any]) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        problem = ""
        sys.stdout = io.StringIO()  # The real one belongs to the test's line.
        try:
            signal.alarm(60)
            run_cell(
                Path(request["directory"]), request["cell"], name_nothing=request["name_nothing"]
            )
        except BaseException:  # noqa: BLE001  (told to the test)
            problem = traceback.format_exc()
        os.write(writing, problem.encode()[-60000:])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        problem = pipe.read()
    _, status = os.waitpid(child, 0)
    return problem or ("" if status == 0 else f"the home ended with status {status}")


def main() -> None:
    for library in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
