#!/usr/bin/env python3
"""Runs clang-tidy over the compiled files of the tree whose content it has not yet passed.

usage: tidy.py ROOT BUILD [FILE...]     BUILD holds compile_commands.json; FILE is a path from ROOT

A file passes once for a given clang-tidy, configuration, flags, and content of itself and the own headers it
includes; what passed is remembered in ${XDG_CACHE_HOME:-~/.cache}/motley/tidy. Exits 1 if a file does not pass.

Files listed in pending.txt beside this program have not been made to pass yet: they are left out unless named.
TIDY_LIST=1 checks nothing and lists the files that have not passed.
"""

import concurrent.futures
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

from sources import closure, compile_flags, gcc_include_folder

KEEP_S = 60 * 24 * 3600


def find_tidy():
    """The newest known clang-tidy: 22 skips system headers and takes a quarter of the time of 14."""
    tool = shutil.which("clang-tidy-22") or shutil.which("clang-tidy")
    if tool is None:
        sys.exit("lint: there is no clang-tidy; run jobscripts/install_packages.sh suite")
    return tool


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(base) / "motley" / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.stat().st_mtime < time.time() - KEEP_S:
            entry.unlink(missing_ok=True)
    return folder


class Tidy:
    def __init__(self, root, build):
        self.root = root
        self.tool = find_tidy()
        self.version = subprocess.run([self.tool, "--version"], capture_output=True, text=True, check=True).stdout
        self.flags = compile_flags(root, build)
        self.cache = cache_folder()
        self.extra = ["-idirafter", gcc_include_folder(), "-Wno-unknown-warning-option"]

    def key(self, path):
        digest = hashlib.sha256()
        configs = [folder / ".clang-tidy" for folder in (self.root / path).parents if folder.is_relative_to(self.root)]
        flags = " ".join(self.flags[path]).replace(str(self.root), "")
        digest.update(f"{self.version}\n{path}\n{flags}\n".encode())
        for file in [*filter(pathlib.Path.exists, configs), *(self.root / each for each in closure(self.root, path))]:
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def check(self, path):
        """(passed, was remembered, messages, seconds)."""
        entry = self.cache / self.key(path)
        if entry.exists():
            entry.touch()
            return True, True, "", 0.0
        start = time.monotonic()
        command = [self.tool, "--quiet", str(self.root / path), "--", *self.extra, *self.flags[path]]
        result = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            entry.touch()
        return result.returncode == 0, False, result.stdout + result.stderr, time.monotonic() - start


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    tidy = Tidy(root, build)
    pending = (pathlib.Path(__file__).parent / "pending.txt").read_text().split()
    ours = sorted(path for path in tidy.flags if path.endswith(".cpp"))
    if os.environ.get("TIDY_LIST"):
        print("\n".join(path for path in ours if not (tidy.cache / tidy.key(path)).exists()))
        return 0
    files = sys.argv[3:] or [path for path in ours if path not in pending]
    unknown = [path for path in files if path not in tidy.flags]
    if unknown:
        sys.exit(f"lint: {', '.join(unknown)} are not compiled in {build}; configure it again")
    failed = remembered = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, result in zip(files, pool.map(tidy.check, files)):
            passed, was_remembered, messages, seconds = result
            remembered += was_remembered
            failed += not passed
            if not was_remembered:
                print(f"{'ok' if passed else 'FAILED'} {path} ({seconds:.0f} s)", flush=True)
            if not passed:
                print(messages, flush=True)
    print(f"{len(files)} files, {remembered} passed before, {failed} failed, {len(pending)} pending")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
