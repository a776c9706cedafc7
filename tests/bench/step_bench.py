#!/usr/bin/env python3
"""A training step of GPT-2 124M in motley, beside its floor and beside PyTorch, in one run; a JSON line per case.

usage: step_bench.py [--build build/cpu] [--pairs 5] [--threads 2] [--cases 4x64,4x256,4x1024] [--dtypes fp32,bf16]
                     [--torch-python PYTHON ...] [--compile]

The programs run in turn (motley, PyTorch, motley, PyTorch, …), each pair in processes of its own; reported are the
medians over the pairs and the median of the ratios within a pair. motley's program measures the floor itself, between
its own steps. PyTorch runs with memory settings that keep it from mapping its tensors anew in each step (see
TUNED_ALLOCATOR), without which it is several times slower. Needs the target bench_train.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TUNED_ALLOCATOR = (
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:"
    "glibc.malloc.top_pad=268435456:glibc.malloc.arena_max=1"
)


def environment(threads, rival):
    values = dict(os.environ, OMP_NUM_THREADS=str(threads))
    if rival:
        # Some machines force an OpenBLAS kernel that is slow for a current one: the rival shall choose.
        values.pop("OPENBLAS_CORETYPE", None)
        values.pop("OPENBLAS_L2_SIZE", None)
        values["GLIBC_TUNABLES"] = TUNED_ALLOCATOR
    return values


def run(command, env):
    done = subprocess.run([str(part) for part in command], env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def motley(args, batch, tokens, dtype):
    command = [args.build / "tests" / "bench" / "bench_train", f"batch={batch}", f"tokens={tokens}", f"dtype={dtype}",
               f"rounds={args.steps}"]
    return run(command, environment(args.threads, rival=False))


def pytorch(args, python, batch, tokens, dtype):
    command = [python, HERE / "pytorch_step.py", "--batch", batch, "--tokens", tokens, "--dtype", dtype,
               "--threads", args.threads, "--steps", args.steps] + (["--compile"] if args.compile else [])
    return run(command, environment(args.threads, rival=True))


def bench_case(args, batch, tokens, dtype):
    ours, rivals = [], {python: [] for python in args.torch_python}
    for pair in range(args.pairs):
        ours.append(motley(args, batch, tokens, dtype))
        for python in rivals:
            rivals[python].append(pytorch(args, python, batch, tokens, dtype))
        print(f"{batch}x{tokens} {dtype}: pair {pair + 1} of {args.pairs}", file=sys.stderr)
    steps = [one["time_s"] for one in ours]
    line = {"case": f"{batch}x{tokens}", "dtype": dtype, "threads": args.threads, "pairs": args.pairs,
            "motley": ours[-1] | {"time_s": statistics.median(steps)}, "rivals": []}
    for results in rivals.values():
        ratio = statistics.median(mine / theirs["step_s"] for mine, theirs in zip(steps, results))
        line["rivals"].append({"program": results[0]["program"], "peak_bytes": results[0]["peak_bytes"],
                               "step_s": statistics.median(one["step_s"] for one in results), "motley_over_rival": ratio})
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build" / "cpu")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="steps timed in each process")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", default="4x64,4x256,4x1024")
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--torch-python", nargs="*", default=["/usr/bin/python3"], help="interpreters that have PyTorch")
    parser.add_argument("--compile", action="store_true", help="torch.compile, where the version has it")
    args = parser.parse_args()
    for case in args.cases.split(","):
        batch, tokens = case.split("x")
        for dtype in args.dtypes.split(","):
            bench_case(args, batch, tokens, dtype)


if __name__ == "__main__":
    main()
