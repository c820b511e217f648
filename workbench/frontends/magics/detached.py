"""Tells a cell that reads names which only a detached job has bound so far."""

from __future__ import annotations

import ast
import sys
from typing import Any

from workbench.graphs.names import cell_names


class Detached:
    """Detached jobs whose results this notebook has not bound yet.

    Args:
        shell: The kernel's shell; each cell is looked at before it runs, while there is such a job.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._names: dict[str, frozenset[str]] = {}

    def add(self, job: str, names: frozenset[str]) -> None:
        """Remember what the cell of `job` will have bound."""
        if not self._names:
            self._shell.events.register("pre_run_cell", self._before_cell)
        self._names[job] = names

    def bound(self, job: str) -> None:
        """Forget `job`: its result was bound."""
        if self._names.pop(job, None) is not None and not self._names:
            self._shell.events.unregister("pre_run_cell", self._before_cell)

    def _before_cell(self, info: Any) -> None:
        try:
            tree = ast.parse(self._shell.transform_cell(info.raw_cell))
        except SyntaxError:
            return
        calls = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if "result" in calls:
            return
        reads = cell_names(tree).reads
        for job, names in self._names.items():
            if shared := sorted(names & reads):
                sys.stderr.write(
                    f"gpu-schedule: {', '.join(shared)} may be older than you think: detached job "
                    f"{job[:8]} binds it, and its .result() was not called yet\n"
                )
