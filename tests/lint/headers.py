#!/usr/bin/env python3
"""Compiles every header of the tree alone, so that none depends on what is included before it.

usage: headers.py ROOT BUILD     BUILD holds compile_commands.json

Prints the compiler's messages; exits 1 if a header does not compile. Goes through ccache where there is one.
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

from sources import compile_flags, source_files


def nearest(flags, header):
    """Flags of the compiled file that shares the longest folder path with the header."""
    def shared(path):
        return len(os.path.commonprefix([path.split("/")[:-1], header.split("/")[:-1]]))

    return flags[max(sorted(flags), key=shared)]


def compile_alone(build, header, flags):
    source = pathlib.Path(build) / "lint" / (header + ".cpp")
    source.parent.mkdir(parents=True, exist_ok=True)
    text = f'#include "{header}"\n'
    if not source.exists() or source.read_text(encoding="utf-8") != text:
        source.write_text(text, encoding="utf-8")
    cache = [shutil.which("ccache")] if shutil.which("ccache") else []
    compiler = os.environ.get("CXX", "g++")
    command = [*cache, compiler, *flags, "-O0", "-c", str(source), "-o", str(source.with_suffix(".o"))]
    result = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
    source.with_suffix(".o").unlink(missing_ok=True)
    return result.returncode, result.stdout + result.stderr


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    os.environ.update(
        CCACHE_BASEDIR=str(root), CCACHE_NOHASHDIR="1", CCACHE_EXTRAFILES=str(build / "cpu.stamp")
    )
    flags = compile_flags(root, build)
    headers = [path for path in source_files(root) if path.endswith(".hpp")]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {header: pool.submit(compile_alone, build, header, nearest(flags, header)) for header in headers}
        for header, job in jobs.items():
            code, output = job.result()
            if code:
                failed += 1
                print(f"{header} does not compile alone:\n{output}")
    print(f"{len(headers)} headers, {failed} do not compile alone")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
