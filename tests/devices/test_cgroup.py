from __future__ import annotations

from pathlib import Path

from workbench.devices.cgroup import CgroupLimits, read_cgroup_limits


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def limits(tmp_path: Path, membership: str, files: dict[str, str]) -> CgroupLimits:
    write(tmp_path / "fs", files)
    (tmp_path / "membership").write_text(membership)
    return read_cgroup_limits(membership=tmp_path / "membership", root=tmp_path / "fs")


def test_the_tightest_limit_on_the_way_to_the_root_holds(tmp_path: Path) -> None:
    assert limits(
        tmp_path,
        "0::/lab/alice\n",
        {
            "cgroup.controllers": "cpu memory",
            "lab/cpu.max": "150000 100000\n",
            "lab/memory.max": "1000\n",
            "lab/memory.current": "700\n",
            "lab/memory.stat": "anon 500\ninactive_file 200\n",
            "lab/alice/cpu.max": "max 100000\n",
            "lab/alice/memory.max": "4000\n",
            "lab/alice/memory.current": "100\n",
        },
    ) == CgroupLimits(cores=1.5, memory_bytes=1000, memory_left_bytes=500)


def test_version_one_is_read_too(tmp_path: Path) -> None:
    assert limits(
        tmp_path,
        "4:memory:/job\n1:cpu,cpuacct:/job\n",
        {
            "cpu,cpuacct/job/cpu.cfs_quota_us": "200000\n",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "memory/job/memory.limit_in_bytes": "4096\n",
            "memory/job/memory.usage_in_bytes": "96\n",
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    ) == CgroupLimits(cores=2.0, memory_bytes=4096, memory_left_bytes=4000)


def test_in_a_container_the_hosts_path_may_not_exist(tmp_path: Path) -> None:
    assert limits(
        tmp_path,
        "4:memory:/docker/abc\n",
        {"memory/memory.limit_in_bytes": "4096\n", "memory/memory.usage_in_bytes": "0\n"},
    ) == CgroupLimits(memory_bytes=4096, memory_left_bytes=4096)


def test_without_limits_there_are_none(tmp_path: Path) -> None:
    files = {"cgroup.controllers": "", "a/cpu.max": "max 100000\n", "a/memory.max": "max\n"}
    assert limits(tmp_path, "0::/a\n", files) == CgroupLimits()


def test_a_machine_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    missing = tmp_path / "nothing"
    assert read_cgroup_limits(membership=missing, root=missing) == CgroupLimits()


def test_a_group_that_is_over_its_limit_has_no_room_left(tmp_path: Path) -> None:
    files = {"cgroup.controllers": "", "a/memory.max": "100\n", "a/memory.current": "120\n"}
    assert limits(tmp_path, "0::/a\n", files).memory_left_bytes == 0
