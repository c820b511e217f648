"""The scheduling core: pure, deterministic, explained. Read `scheduler.py` first.

Events (past facts) go in, decisions (wishes) come out. Nothing here reads a clock, draws a
random number, logs or does input or output.
"""
