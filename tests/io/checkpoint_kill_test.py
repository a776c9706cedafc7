"""kill -9 at random moments of saves: every start finds an intact checkpoint, at least as new as the
last one that was reported durable, and no temporary folder survives it.

MOTLEY_KILLS sets how many kills (default 20; 100 and more on demand)."""

import glob
import os
import random
import subprocess
import sys
import time

WORKER = sys.argv[1]
KILLS = int(os.environ.get("MOTLEY_KILLS", "20"))
ROWS = "700"  # about 5 MB: a save takes some ten milliseconds
FOLDER = "run"


def leftovers():
    return glob.glob(FOLDER + "/**/*.tmp", recursive=True)


def killed_run(delay):
    """Starts a run that saves for ever, kills it, returns the last step that it called durable."""
    child = subprocess.Popen([WORKER, "save", FOLDER, ROWS], stdout=subprocess.PIPE, text=True)
    first = child.stdout.readline()
    if not first.startswith("durable "):
        sys.exit(f"the run did not start: {first!r}, exit code {child.wait()}")
    time.sleep(delay)
    child.kill()
    lines = [first] + child.stdout.readlines()
    child.wait()
    return int([line for line in lines if line.endswith("\n")][-1].split()[1])


def main():
    random.seed(20240607)
    killed_inside = 0
    for kill in range(KILLS):
        durable = killed_run(random.uniform(0.0, 0.15))
        killed_inside += len(leftovers()) > 0
        check = subprocess.run([WORKER, "check", FOLDER, ROWS], capture_output=True, text=True)
        if check.returncode != 0 or "damaged" in check.stderr:
            sys.exit(f"kill {kill}: exit code {check.returncode}, {check.stdout}{check.stderr}")
        found = int(check.stdout.split()[1])
        if found < durable:
            sys.exit(f"kill {kill}: step {durable} was durable, step {found} was found")
        if leftovers():
            sys.exit(f"kill {kill}: {leftovers()} survived a start")
    print(f"{KILLS} kills, {killed_inside} of them with a save on its way, last step {found}")
    if KILLS >= 10 and killed_inside == 0:
        sys.exit("no kill hit a save: the delays do not fit this machine")


main()
