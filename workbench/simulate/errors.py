"""Errors of the simulator.

UserError
├── BadTrace       a trace cannot be read, or a row of it cannot be
├── BadCluster     a cluster that nobody could build
├── BadPlot        the chart cannot be drawn, or not there
└── UnknownPolicy  no policy of this name
"""

from __future__ import annotations

from workbench.core.errors import UserError


class BadTrace(UserError):
    """A trace cannot be read; the message names the file, and the row where it is a row's fault."""


class BadCluster(UserError):
    """A cluster that nobody could build; the message gives the spelling."""


class BadPlot(UserError):
    """The chart cannot be drawn, or not written where it was asked for."""


class UnknownPolicy(UserError):
    """No policy of this name; the message lists those that there are."""
