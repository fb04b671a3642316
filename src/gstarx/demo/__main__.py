"""``python -m gstarx.demo``."""

import sys

from gstarx.demo import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
