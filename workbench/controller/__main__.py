"""`python -m workbench.controller`."""

import sys

from workbench.controller.main import main

sys.exit(main())
