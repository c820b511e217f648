"""CPU or GPU, and why. Read `verdict.py` first."""

from workbench.advice.verdict import Advice, advise

__all__ = ["Advice", "advise"]
