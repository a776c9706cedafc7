#!/usr/bin/env python3
"""Checks which file includes what: the arrows between folders and the place of every foreign library.

usage: includes.py ROOT

Prints each breach as file: what (why); exits 1 if there is one.
"""

import pathlib
import re
import sys

from sources import closure, includes, source_files

# What a file may include of ours: the first line whose folder holds the file counts.
OWN = (
    ("kernels/base", ("kernels/base",)),
    ("kernels", ("kernels",)),
    ("comm", ("comm", "kernels")),
    ("io", ("io", "comm", "kernels/base")),
    ("model", ("model", "comm", "kernels")),
    ("app", ("app", "model", "io", "comm", "kernels")),
    ("tests", ("tests", "app", "model", "io", "comm", "kernels")),
)

# Foreign headers and where they may be included. "once" marks a library kept to one file pair of its folder.
KOKKOS = ("kernels/base/view.hpp", "kernels/(?!base/)", "app/", "tests/")
FOREIGN = (
    (r"Kokkos_.*", KOKKOS, ""),
    (r"(oneapi/)?dnnl.*", ("kernels/cpu/", "tests/bench/"), ""),
    (r"cuda_runtime.*", ("kernels/cuda/", "comm/nccl/", "tests/"), ""),
    (r"(cuda|cublas|cudnn|cub/|thrust/).*", ("kernels/cuda/", "tests/bench/"), ""),
    (r"mpi\.h", ("comm/mpi/", "tests/"), ""),
    (r"nccl\.h", ("comm/nccl/", "tests/"), ""),
    (r"hdf5\.h", ("io/hdf5/", "tests/io/"), ""),
    (r"metis\.h", ("model/plan/detail/",), "once"),
    (r"nlohmann/.*", ("io/", "app/", "tests/"), "once"),
    (r"libdeflate\.h", ("io/",), "once"),
    (r"zlib\.h", ("io/", "tests/io/"), "once"),
    (r"zstd.*\.h", ("io/", "tests/io/"), "once"),
    (r"pcre2.*\.h", ("io/",), "once"),
    (r"xxh(ash|3).*\.h", ("io/",), "once"),
    (r"openssl/.*", ("io/",), "once"),
    (r"CLI/.*", ("app/",), ""),
    (r"toml\+\+/.*", ("app/",), ""),
    (r"spdlog/.*", ("app/.*\\.cpp",), "once"),  # 20 s of compiler time each
    (r"fmt/.*", ("app/.*\\.cpp",), ""),
    (r"g(test|mock)/.*", ("tests/",), ""),
    (r"omp\.h", ("kernels/(?!base/)", "io/", "app/", "tests/"), ""),
    (r"cpuid\.h", ("kernels/",), ""),
    (r"[a-z0-9_]+", (".*",), ""),  # the standard library
    (r"(unistd|fcntl|signal|time|poll|sched|pthread|glob|dirent|sysexits|dlfcn|errno|string|stdlib|netdb|spawn)\.h", (".*",), ""),
    (r"(sys|linux|arpa|netinet)/[a-z_0-9]+\.h", (".*",), ""),
)

# model/plan and model/spec are pure: MPI must not reach them through any header.
PURE = ("model/plan/", "model/spec/")


def folder_of(path):
    return next((rule for rule in OWN if path.startswith(rule[0] + "/")), None)


def own_breaches(root, path, own):
    _, allowed = folder_of(path)
    for header in own:
        if not (pathlib.Path(root) / header).is_file():
            yield f'includes "{header}" (own headers are named by their path from the root)'
        elif not any(header.startswith(folder + "/") for folder in allowed):
            yield f'includes "{header}" (this folder may include {", ".join(allowed)} alone)'
        elif "/detail/" in header and not path.startswith(header.split("detail/")[0]):
            if not path.startswith("tests/"):
                yield f'includes "{header}" (detail/ belongs to its folder)'


def foreign_breaches(path, foreign):
    for header in foreign:
        rule = next((rule for rule in FOREIGN if re.fullmatch(rule[0], header)), None)
        if rule is None:
            yield f"includes <{header}> (tests/lint/includes.py does not know it); say there where it belongs"
        elif not any(re.match(place, path) for place in rule[1]):
            yield f"includes <{header}> (its places are {', '.join(rule[1])})"


def scattered(files_of_library):
    """Libraries that are spread over more than one file pair of a folder outside tests."""
    for (library, folder), paths in sorted(files_of_library.items()):
        stems = {path.rsplit(".", 1)[0] for path in paths}
        if len(stems) > 1:
            yield f"{folder}: {', '.join(sorted(paths))} include {library} (it belongs into one file pair of the folder)"


def breaches(root):
    files_of_library = {}
    for path in source_files(root):
        own, foreign = includes(root, path)
        for breach in (*own_breaches(root, path, own), *foreign_breaches(path, foreign)):
            yield f"{path}: {breach}"
        if path.startswith(PURE) and any("mpi.h" in includes(root, each)[1] for each in closure(root, path)):
            yield f"{path}: reaches <mpi.h> (planning is pure, so that one process can test it)"
        for pattern, _, kind in FOREIGN:
            if kind == "once" and not path.startswith("tests/") and any(re.fullmatch(pattern, h) for h in foreign):
                files_of_library.setdefault((pattern, path.split("/")[0]), set()).add(path)
    yield from scattered(files_of_library)


def main():
    root = sys.argv[1]
    found = list(breaches(root))
    print("\n".join(found))
    print(f"{len(source_files(root))} files, {len(found)} breaches")
    return 1 if found or not source_files(root) else 0


if __name__ == "__main__":
    sys.exit(main())
