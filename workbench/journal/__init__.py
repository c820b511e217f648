"""The journal: every event and decision, in order, on disk. Read `journal.py` first."""
