"""The other driver of the core: a trace, a cluster and a policy in, a report out.

Read `run.py` first; `experiment.py` is what front-ends call.
"""
