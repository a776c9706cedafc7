"""Compares motley with PyTorch: logits, loss, every gradient, and the parameters after three AdamW steps.

usage: parity_test.py FAMILY DTYPE [untied]     (the program parity_dump in MOTLEY_BUILD_DIR does motley's part)
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MOTLEY_SOURCE_DIR"], "tests"))
from require import require_or_skip  # noqa: E402

try:
    import h5py
    import numpy
    import torch
except ImportError as error:
    require_or_skip("torch", f"{error}; install python3-torch and python3-h5py")

from models import Spec, logits, tensor_shapes  # noqa: E402

STEPS = 3
LR, WEIGHT_DECAY, CLIP = 1e-3, 0.1, 0.5
EPSILON = {"fp32": 2.0**-23, "fp64": 2.0**-52}


def make_spec(family, tied):
    if family == "gpt2":
        return Spec("gpt2", 3, 48, 4, 4, 192, 101, 24, tied)
    return Spec("llama", 3, 48, 6, 2, 80, 101, 24, tied)


def make_weights(spec, dtype):
    """Norms near 1, everything else small but not tiny: no gradient vanishes."""
    random = numpy.random.default_rng(7)
    weights = {}
    for name, shape in tensor_shapes(spec).items():
        is_norm_weight = len(shape) == 1 and name.endswith("weight")
        values = random.normal(1.0 if is_norm_weight else 0.0, 0.1, shape)
        weights[name] = torch.tensor(values, dtype=dtype, requires_grad=True)
    return weights


def make_batch(spec):
    random = numpy.random.default_rng(11)
    ids = random.integers(0, spec.vocab, (3, spec.seq_length + 1))
    targets = ids[:, 1:].copy()
    targets[0, 3:7] = -1  # not counted in the loss
    return ids[:, :-1], targets


def write_input(path, spec, dtype_name, weights, inputs, targets):
    with h5py.File(path, "w") as file:
        for name, value in vars(spec).items():
            if name != "rope_theta":
                file.attrs[name] = numpy.int64(value) if isinstance(value, (bool, int)) else value
        file.attrs["dtype"] = dtype_name
        file.attrs["steps"] = numpy.int64(STEPS)
        file.attrs["lr"], file.attrs["weight_decay"], file.attrs["clip_grad"] = LR, WEIGHT_DECAY, CLIP
        file["inputs"] = inputs.astype("int32")
        file["targets"] = targets.astype("int32")
        for name, value in weights.items():
            file["weights/" + name] = value.detach().double().numpy()


def loss_of(spec, weights, inputs, targets):
    flat = logits(spec, weights, inputs).flatten(0, 1)
    return torch.nn.functional.cross_entropy(flat, targets.flatten(), ignore_index=-1)


def train(spec, weights, inputs, targets):
    """Three AdamW steps as a PyTorch user writes them: decay on matrices only, clipping by global norm."""
    matrices = [w for w in weights.values() if w.dim() > 1]
    vectors = [w for w in weights.values() if w.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}],
        lr=LR, betas=(0.9, 0.95), eps=1e-8,
    )
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(spec, weights, inputs, targets)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(list(weights.values()), CLIP)))
        optimizer.step()
        losses.append(float(loss))
    return losses, norms


class Verdict:
    def __init__(self):
        self.failures = 0

    def check(self, what, error, bound):
        ok = error <= bound
        self.failures += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {what}: error {error:.2e}, bound {bound:.2e}")


def relative(value, reference):
    """Norm of the difference over the norm of the reference."""
    value, reference = numpy.asarray(value, dtype=numpy.float64), numpy.asarray(reference, dtype=numpy.float64)
    return float(numpy.linalg.norm(value - reference) / max(numpy.linalg.norm(reference), 1e-300))


def compare(spec, dtype_name, results, reference, verdict):
    # fp64 to 1e-10 (the project's bound); in fp32 each element by |a-r| <= 4 eps sqrt(K) (|r| + RMS), K the longest sum.
    eps, longest = EPSILON[dtype_name], max(spec.vocab, 3 * spec.seq_length, spec.ffn)
    per_tensor = 1e-10 if dtype_name == "fp64" else 4 * eps * longest**0.5
    depth = 2 * spec.n_layers + 2  # operations that follow one another, each with its own rounding

    def elementwise(value, expected):
        scale = numpy.abs(expected) + numpy.sqrt(numpy.mean(expected**2))
        return float(numpy.max(numpy.abs(value - expected) / scale))

    verdict.check("logits", elementwise(results["logits"][:], reference["logits"]), per_tensor)
    verdict.check("loss", abs(results["loss"][0] - reference["loss"]) / reference["loss"], per_tensor)
    for name, expected in reference["gradients"].items():
        value = results["gradients/" + name][:]
        if name.endswith("attn.c_attn.bias"):
            # The key bias shifts all scores of a query alike: its exact gradient is zero, what is there is rounding.
            part = slice(spec.hidden, 2 * spec.hidden)
            scale = float(numpy.linalg.norm(expected))
            verdict.check("gradient " + name + " (keys)", float(numpy.linalg.norm(value[part])) / scale, per_tensor)
            value, expected = numpy.delete(value, part), numpy.delete(expected, part)
        verdict.check("gradient " + name, relative(value, expected), per_tensor * (1 if dtype_name == "fp64" else depth**0.5))
    for step in range(STEPS):
        for what in ("losses", "grad_norms"):
            bound = 1e-10 if dtype_name == "fp64" else 1e-5
            error = abs(results[what][step] - reference[what][step]) / reference[what][step]
            verdict.check(f"{what} of step {step + 1}", error, bound)
    bound = 1e-10 if dtype_name == "fp64" else 1e-5
    for name, expected in reference["parameters"].items():
        value = results["parameters/" + name][:]
        moved = relative(expected, reference["start"][name])
        assert moved >= 100 * bound, f"{name} moved by {moved:.1e} only: the comparison would show nothing"
        if name.endswith("attn.c_attn.bias"):
            part = slice(spec.hidden, 2 * spec.hidden)
            # Adam turns the rounding noise of a zero gradient into whole steps.
            verdict.check("parameters " + name + " (keys)", float(numpy.max(numpy.abs(value[part] - expected[part]))), 2 * LR * STEPS)
            value, expected = numpy.delete(value, part), numpy.delete(expected, part)
        verdict.check("parameters " + name, relative(value, expected), bound)


def main():
    family, dtype_name, tied = sys.argv[1], sys.argv[2], "untied" not in sys.argv[3:]
    dtype = {"fp32": torch.float32, "fp64": torch.float64}[dtype_name]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    spec = make_spec(family, tied)
    weights = make_weights(spec, dtype)
    inputs, targets = make_batch(spec)
    write_input("in.h5", spec, dtype_name, weights, inputs, targets)
    subprocess.run([pathlib.Path(os.environ["MOTLEY_BUILD_DIR"]) / "tests" / "parity_dump", "in.h5", "out.h5"], check=True)

    inputs, targets = torch.tensor(inputs), torch.tensor(targets)
    reference = {"start": {name: w.detach().numpy().copy() for name, w in weights.items()}}
    loss = loss_of(spec, weights, inputs, targets)
    loss.backward()
    reference["loss"] = float(loss)
    reference["logits"] = logits(spec, weights, inputs).detach().flatten(0, 1).double().numpy()
    reference["gradients"] = {name: w.grad.double().numpy().copy() for name, w in weights.items()}
    reference["losses"], reference["grad_norms"] = train(spec, weights, inputs, targets)
    reference["parameters"] = {name: w.detach().double().numpy() for name, w in weights.items()}

    verdict = Verdict()
    with h5py.File("out.h5", "r") as results:
        compare(spec, dtype_name, results, reference, verdict)
    print(f"{verdict.failures} comparisons failed")
    return min(verdict.failures, 1)


if __name__ == "__main__":
    sys.exit(main())
