"""`python -m worthwhile` is the `worthwhile` command."""

import sys

from worthwhile.cli import main

sys.exit(main())
