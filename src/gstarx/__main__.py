"""``python -m gstarx``, the same as ``gstarx``."""

import sys

from gstarx.cli import main

if __name__ == "__main__":
    sys.exit(main())
