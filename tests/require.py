"""For tests in Python: what to do where the machine lacks something a test needs."""

import os
import sys


def require_or_skip(name, reason):
    """Ends the program as skipped (77), or as failed (1) where MOTLEY_REQUIRE ("torch,cuda") names it."""
    if name in os.environ.get("MOTLEY_REQUIRE", "").split(","):
        print(f"FAILED: MOTLEY_REQUIRE names {name}, which this test misses: {reason}", file=sys.stderr)
        sys.exit(1)
    print(f"SKIPPED: without {name}: {reason}")
    sys.exit(77)
