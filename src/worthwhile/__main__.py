"""`python -m worthwhile` is the `worthwhile` command."""

import sys

from worthwhile.cli.main import main

sys.exit(main())
