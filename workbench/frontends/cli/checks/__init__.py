"""What `workbench doctor` looks at. Each check is a function that returns what it found."""

from workbench.frontends.cli.checks.installation import installation_checks
from workbench.frontends.cli.checks.jupyter import jupyter_checks
from workbench.frontends.cli.checks.places import place_checks
from workbench.frontends.cli.checks.services import service_checks
from workbench.frontends.cli.checks.verdict import Check, Verdict

__all__ = [
    "Check",
    "Verdict",
    "installation_checks",
    "jupyter_checks",
    "place_checks",
    "service_checks",
]
