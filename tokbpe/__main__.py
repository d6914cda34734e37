"""`python -m tokbpe`, the same as the command `tokbpe`."""

import sys

from tokbpe.cli import main

sys.exit(main())
