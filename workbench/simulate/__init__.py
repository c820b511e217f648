"""The other driver of the core: a trace, a cluster and a policy in, a report out.

In a notebook or a script, this is all there is to know:

    lab = Cluster(nodes=1, gpus_per_node=4)
    monday = read_trace(Path("monday.csv")).workload    # or Workload.of("monday", [SimJob(…), …])
    fifo, ours = compare(monday, lab, ["fifo", "default"])
    waits({"fifo": fifo, "default": ours})
    notices(ours)
    gantt(ours)

Read `run.py` first; `experiment.py` is what front-ends call.
"""

from workbench.core.model import PriorityClass
from workbench.simulate.experiment import Result, Settings, compare, try_policy
from workbench.simulate.gantt import Frame, Gantt, gantt, zoomable
from workbench.simulate.recording import record_journal
from workbench.simulate.tables import Table, notices, waits
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster, SimJob, Trace, Workload

__all__ = [
    "Cluster",
    "Frame",
    "Gantt",
    "PriorityClass",
    "Result",
    "Settings",
    "SimJob",
    "Table",
    "Trace",
    "Workload",
    "compare",
    "gantt",
    "notices",
    "read_trace",
    "record_journal",
    "try_policy",
    "waits",
    "zoomable",
]
