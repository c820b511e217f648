"""The notebook's magics. Read `schedule.py` first: a scheduled cell from text to result."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Register the magics; nothing is started and nothing heavy is imported yet."""
    from workbench.frontends.magics import bare_help, completion
    from workbench.frontends.magics.lease import LeaseMagics
    from workbench.frontends.magics.magics import WorkbenchMagics, misplaced_cell_magic
    from workbench.frontends.magics.timeline import TimelineMagics

    workbench = WorkbenchMagics(shell)
    shell.register_magics(workbench, LeaseMagics, TimelineMagics(workbench))
    shell.register_magic_function(misplaced_cell_magic, "line", "%gpu-schedule")
    completion.register(shell)
    bare_help.register(shell)
