from __future__ import annotations

from workbench.core.decisions import Preempt
from workbench.core.model import PriorityClass
from workbench.simulate.experiment import Settings, try_policy
from workbench.simulate.tables import Table, notices, waits
from workbench.simulate.workload import Cluster, SimJob, Workload

ONE = Cluster(nodes=1, gpus_per_node=1)
LONG = SimJob(id="long", submit_s=0.0, service_s=1_000.0, gpus=1, user="bob")
URGENT = SimJob(
    id="urgent", submit_s=100.0, service_s=500.0, gpus=1, user="amy", priority=PriorityClass.HIGH
)
DAY = Workload.of("day", [LONG, URGENT])


def test_a_job_of_a_higher_class_is_started_at_once_and_what_gave_way_comes_back() -> None:
    result = try_policy(DAY, ONE, "fifo", Settings(restart_cost_s=60.0))
    (told,) = result.notices
    assert isinstance(told, Preempt)
    assert (told.at, told.job, told.winner) == (100.0, "long", "urgent")
    bob, amy = result.records
    assert (bob.preemptions, bob.wait_s, amy.wait_s) == (1, 560.0, 0.0)


def test_notices_say_whom_when_why_and_when_it_ran_again() -> None:
    table = notices(try_policy(DAY, ONE, "fifo"))
    assert repr(table).splitlines() == [
        "SIMULATED: what fifo decided beyond starting jobs",
        f"at     user  job   decision  {'why':<91}  ran again after",
        "2 min  bob   long  preempt   job urgent of class high needs its units; "
        "it keeps its place by class, fair share and order  8 min",
    ]


def test_where_nobody_gave_way_there_is_no_row() -> None:
    assert notices(try_policy(Workload.of("day", [LONG]), ONE, "fifo")).rows == ()


def test_waits_have_a_row_for_each_user_and_one_for_all() -> None:
    plain = Workload.of("day", [LONG, SimJob(id="x", submit_s=0.0, service_s=1.0, gpus=1)])
    fifo = try_policy(plain, ONE, "fifo")
    table = waits({"so": fifo, "again": fifo})
    assert table.head == (
        "user", "jobs", "so: mean wait", "so: longest", "again: mean wait", "again: longest",
    )  # fmt: skip
    assert [row[:4] for row in table.rows] == [
        ("(no user named)", "1", "17 min", "17 min"),
        ("bob", "1", "0 s", "0 s"),
        ("everybody", "2", "8 min", "17 min"),
    ]


def test_a_table_says_simulated_in_both_forms_and_a_name_cannot_become_markup() -> None:
    table = Table(title="<t>", head=("<h>",), rows=(("<td>evil",),))
    markup = table._repr_html_()
    assert "SIMULATED: &lt;t&gt;" in markup
    assert "&lt;td&gt;evil" in markup
    assert "&lt;h&gt;" in markup
    assert repr(table) == "SIMULATED: <t>\n<h>\n<td>evil"
