"""`python -m workbench.frontends.cli`."""

import sys

from workbench.frontends.cli import main

sys.exit(main())
