"""``python -m gstarx.cli``."""

import sys

from gstarx.cli import main

if __name__ == "__main__":
    sys.exit(main())
