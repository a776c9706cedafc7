"""What the lints share: the source files of a tree, their includes, and how each is compiled."""

import functools
import json
import pathlib
import re
import shlex
import subprocess

FOLDERS = ("kernels", "comm", "io", "model", "app", "tests")
SUFFIXES = (".hpp", ".cpp", ".cu", ".cuh")
_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def source_files(root):
    """Paths from the root of all our C++ files, sorted."""
    root = pathlib.Path(root)
    found = (path for folder in FOLDERS for path in (root / folder).rglob("*"))
    return sorted(str(path.relative_to(root)) for path in found if path.suffix in SUFFIXES)


@functools.lru_cache(maxsize=None)
def includes(root, path):
    """What a file includes, as (own headers in quotes, headers in angle brackets)."""
    pairs = _INCLUDE.findall((pathlib.Path(root) / path).read_text(encoding="utf-8"))
    return tuple(own for own, _ in pairs if own), tuple(foreign for _, foreign in pairs if foreign)


def closure(root, path):
    """The file and every own header it includes, directly or not, sorted."""
    seen, waiting = set(), [path]
    while waiting:
        current = waiting.pop()
        if current not in seen and (pathlib.Path(root) / current).exists():
            seen.add(current)
            waiting.extend(includes(root, current)[0])
    return sorted(seen)


def compile_flags(root, build):
    """Arguments each compiled file of ours gets, without compiler, output, input and precompiled headers."""
    root = pathlib.Path(root).resolve()
    flags = {}
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text(encoding="utf-8")):
        file = pathlib.Path(entry["file"])
        if not file.is_relative_to(root) or file.is_relative_to(pathlib.Path(build).resolve()):
            continue
        arguments = shlex.split(entry["command"])
        first = next(i for i, word in enumerate(arguments) if re.search(r"(^|/)(\S*(g|c|clang)\+\+\S*)$", word))
        flags[str(file.relative_to(root))] = _without_outputs(arguments[first + 1 :])
    return flags


def _without_outputs(arguments):
    kept, skip = [], False
    for word in arguments:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-include", "-MT", "-MF"):
            skip = True
        elif word not in ("-MD", "-Winvalid-pch"):
            kept.append(word)
    return kept


def gcc_include_folder():
    """GCC's own headers: clang finds omp.h there."""
    return subprocess.run(
        ["g++", "-print-file-name=include"], check=True, capture_output=True, text=True
    ).stdout.strip()
