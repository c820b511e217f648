from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from tests.controller.running import Place, Refused
from workbench.controller.rules import Rules, group_of, read_rules
from workbench.core.errors import UserError
from workbench.core.model import Uid
from workbench.core.settings import Quota, Settings
from workbench.policies.las import Las

ME = pwd.getpwuid(os.getuid()).pw_name
EVERYTHING = f"""
policy = "las"
bound_s = 7200
fair_share = false
half_life_s = 3600
[high]
leases = 2
[quota]
gpus = 4
[user_quotas.{ME}]
gpus = 8
[user_quotas.1234]
leases = 0
[group_quotas.vision]
gpu_hours_a_week = 10.5
"""


def rules_of(tmp_path: Path, text: str) -> Rules:
    file = tmp_path / "rules.toml"
    file.write_text(text, encoding="utf-8")
    return read_rules(file)


def test_a_file_of_rules_is_read(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, EVERYTHING)
    assert isinstance(rules.make_policy(), Las)
    assert rules.settings == Settings(
        bound_s=7200,
        fair_share=False,
        half_life_s=3600,
        high=Quota(leases=2),
        quota=Quota(gpus=4),
        user_quotas={Uid(os.getuid()): Quota(gpus=8), Uid(1234): Quota(leases=0)},
        group_quotas={"vision": Quota(gpu_hours_a_week=10.5)},
    )


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert rules_of(tmp_path, "") == Rules()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy =", "cannot be read: "),
        ('policy = "lass"', "there is no policy 'lass'. Name one of fifo, "),
        ("bond_s = 3", "there is no rule 'bond_s'. Name one of bound_s, "),
        ("[quota]\ngpu = 3", "there is no rule 'gpu'. Name one of leases, gpus, "),
        ("[group_quotas.vision]\ngpu = 3", "there is no rule 'gpu'"),
        ("[user_quotas.nobody-at-all]\ngpus = 3", "this host knows no user 'nobody-at-all'"),
        ('bound_s = "1 d"', r"Expected `float \| null`, got `str` - at `\$.bound_s`"),
        ("[quota]\ngpus = 1.5", r"Expected `int \| null`, got `float`"),
        ("quota = 3", "Expected `object`, got `int`"),
        ("user_quotas = 3", "Expected "),
        ("[quota]\ngpus = -1", "-1 is not a finite amount"),
        ("half_life_s = inf", "inf is not a finite amount"),
        ("half_life_s = 0", "half_life_s is 0"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        rules_of(tmp_path, text)
    assert "rules.toml" in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_rules(tmp_path / "none.toml")


def test_a_user_counts_against_the_first_group_with_a_quota() -> None:
    group = grp.getgrgid(pwd.getpwnam(ME).pw_gid).gr_name
    settings = Settings(group_quotas={"no-such-group": Quota(), group: Quota(gpus=1)})
    assert group_of(Uid(os.getuid()), settings) == group
    assert group_of(Uid(os.getuid()), Settings()) == ""
    assert group_of(Uid(4_000_000), settings) == ""


async def test_a_controller_keeps_its_rules_over_a_restart(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("half_life_s = 3600\n[quota]\ngpus = 1\n", encoding="utf-8")
    await place.start("--simulate", "2xA100-SXM4-80GB", "--rules", str(file))
    client, agent = await place.peer(), await place.agent()
    with pytest.raises(Refused, match="your quota is 1 GPU at one time"):
        await client.submit(gpus=2)
    first, second = await client.submit(gpus=1), await client.submit(gpus=1)
    grant = await agent.grant()
    assert grant.job == first
    await agent.confirm(grant)
    await agent.assert_nothing_more()
    assert (await client.job(second)).reason == ("its owner may hold 1 GPU at one time and holds 1")
    place.kill()
    await place.start("--rules", str(file))
    client = await place.peer()
    assert (await client.job(second)).state == "queued"


async def test_a_controller_with_wrong_rules_does_not_start(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("policy = 3\n", encoding="utf-8")
    process = place.spawn("--rules", str(file))
    assert process.wait(timeout=30) == 1
