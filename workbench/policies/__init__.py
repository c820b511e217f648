"""Orderings of waiting jobs, one a file; pure. Read `fifo.py` first.

A policy is a `workbench.core.policy.Policy`: it orders and does nothing else.
"""
