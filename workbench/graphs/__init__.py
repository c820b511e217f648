"""From a cell's code to a plan of tasks, and from a plan to what runs.

Read `cell.py` (text → statements), then `plan.py` (statements → plan). A statement becomes a task
only if `analysis.py` proves that it may move; the proof is an abstract run of the statement
(`expressions.py`, `statements.py`) over kinds of values (`values.py`) that collects its effects
(`machine.py`). What library calls do is data: `catalogue.json`.

In the home `run.py` runs a plan: it computes early, on workers (`run_parts.py`, `run_remote.py`),
and commits in program order (`run_node.py`). `dask_edge.py` alone knows Dask.
"""
