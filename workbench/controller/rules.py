"""A lab's rules for its queue, from a file: policy, bounds, quotas, the budget of class `high`.

    policy = "patient"
    bound_s = 86400
    [quota]                     # of each user who has no other
    gpus = 4
    [user_quotas.alice]
    gpus = 8
    [group_quotas.vision]       # a Unix group
    gpu_hours_a_week = 500
    [high]                      # what each user may hold and spend in class high
    leases = 2

Every key is one of `core.settings.Settings`; what is left out keeps its default.
"""

from __future__ import annotations

import functools
import grp
import os
import pwd
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from workbench.core.errors import UserError
from workbench.core.model import Uid
from workbench.core.policy import Policy
from workbench.core.settings import Quota, Settings
from workbench.policies import DEFAULT_POLICY, POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a lab orders its queue.

    Attributes:
        policy: Its name.
        settings: The core's settings.
    """

    policy: str = DEFAULT_POLICY
    settings: Settings = Settings()  # noqa: RUF009  (frozen)

    def make_policy(self) -> Policy:
        """Return a new policy."""
        return POLICIES[self.policy]()


def read_rules(file: Path) -> Rules:
    """Read a file of rules.

    Raises:
        UserError: It cannot be read, or names what there is not; the message says which.
    """
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # not TOML, or not even text
        raise UserError(
            f"the rules in {file} cannot be read: {error}", next_step="Mend the file"
        ) from error
    policy = raw.pop("policy", DEFAULT_POLICY)
    if not isinstance(policy, str) or policy not in POLICIES:
        raise UserError(
            f"{file}: there is no policy {policy!r}", next_step=f"Name one of {', '.join(POLICIES)}"
        )
    _check_keys(file, raw, Settings)
    tables = [raw.get("high"), raw.get("quota")]
    tables += [*_items(raw, "user_quotas").values(), *_items(raw, "group_quotas").values()]
    for table in tables:
        if isinstance(table, dict):
            _check_keys(file, table, Quota)
    if _items(raw, "user_quotas"):
        raw["user_quotas"] = {
            _uid_of(file, name): quota for name, quota in raw["user_quotas"].items()
        }
    return Rules(policy=policy, settings=_settings(file, raw))


def group_of(uid: Uid, settings: Settings) -> str:
    """Return the first group with a quota that a user is a member of; empty for none."""
    if not settings.group_quotas:
        return ""
    member_of = _groups_of(uid)
    return next((group for group in settings.group_quotas if group in member_of), "")


def _items(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def _check_keys(file: Path, table: dict[str, Any], kind: type[Settings | Quota]) -> None:
    known = kind.__dataclass_fields__
    for key in table:
        if key not in known:
            raise UserError(
                f"{file}: there is no rule {key!r}", next_step=f"Name one of {', '.join(known)}"
            )


def _settings(file: Path, raw: dict[str, Any]) -> Settings:
    try:
        settings = msgspec.convert(raw, Settings)
    except msgspec.ValidationError as error:
        raise UserError(f"{file}: {error}", next_step="Mend the file") from error
    if not settings.half_life_s:
        raise UserError(f"{file}: half_life_s is 0", next_step="Give a time of more than 0 seconds")
    quotas = [settings.high, settings.quota]
    quotas += [*settings.user_quotas.values(), *settings.group_quotas.values()]
    numbers = [getattr(settings, name) for name in Settings.__dataclass_fields__]
    numbers += [getattr(one, name) for one in quotas for name in one.__dataclass_fields__]
    for number in numbers:
        if isinstance(number, int | float) and not 0 <= number < float("inf"):
            raise UserError(f"{file}: {number} is not a finite amount", next_step="Mend the file")
    return settings


def _uid_of(file: Path, name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        if name.isdecimal():
            return int(name)
        raise UserError(
            f"{file}: this host knows no user {name!r}", next_step="Name a login, or a uid"
        ) from None


@functools.lru_cache(maxsize=1024)
def _groups_of(uid: int) -> frozenset[str]:
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return frozenset()
    names = []
    for gid in os.getgrouplist(user.pw_name, user.pw_gid):
        try:
            names.append(grp.getgrgid(gid).gr_name)
        except KeyError:
            continue
    return frozenset(names)
