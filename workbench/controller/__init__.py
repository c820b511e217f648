"""The one process per lab host that owns queue, leases and telemetry. Runs no user code.

Read `main.py` for what it is made of, then `driver.py`: the single writer around the pure core.
"""
