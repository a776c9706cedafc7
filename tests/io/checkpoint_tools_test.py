"""Other programs read a checkpoint: h5py its names, values and attributes, h5dump its text."""

import os
import shutil
import subprocess
import sys

WORKER = sys.argv[1]
STEP, ROWS = 3, 40
NAMES = [
    ("/param/embedding.tokens.weight", (ROWS, 512)),
    ("/param/layers.0.norm1.bias", (37,)),
    ("/param/exact", (3, 5, 2)),
    ("/master/embedding.tokens.weight", (ROWS, 512)),
    ("/adam/m/embedding.tokens.weight", (ROWS, 512)),
    ("/adam/v/embedding.tokens.weight", (ROWS, 512)),
]


def skip(name, reason):
    if name in os.environ.get("MOTLEY_REQUIRE", "").split(","):
        sys.exit(f"MOTLEY_REQUIRE names {name}, which this test misses: {reason}")
    print(f"skipped without {name}: {reason}")
    sys.exit(77)


def write_checkpoint():
    child = subprocess.Popen([WORKER, "save", "run", str(ROWS)], stdout=subprocess.PIPE, text=True)
    while child.stdout.readline() != f"durable {STEP}\n":
        pass
    child.kill()
    child.wait()
    return f"run/checkpoints/step_{STEP:08d}/state.h5"


def expected(k, shape):
    i = numpy.arange(numpy.prod(shape))
    return (((7 * i + 13 * STEP + 101 * k) % 251 - 125) / 8).reshape(shape)


try:
    import h5py
    import numpy
except ImportError as error:
    skip("h5py", str(error))

path = write_checkpoint()
with h5py.File(path, "r") as file:
    for k, (name, shape) in enumerate(NAMES):
        data = file[name]
        assert data.shape == shape, (name, data.shape)
        # bf16 is not a type of numpy: HDF5 converts it to float32, exactly.
        assert (numpy.asarray(data[...], dtype=float) == expected(k, shape)).all(), name
        assert data.chunks is None and data.id.get_offset() > 0, name
    assert file["/param/embedding.tokens.weight"].id.get_type().get_size() == 2
    assert file["/data"].attrs["next_sample"] == 4 * STEP
    assert file["/data"].attrs["epoch"] == 2
    assert file["/sched"].attrs["lr"] == 0.1
    assert file["/sched"].attrs["style"] in ("cosine", b"cosine"), file["/sched"].attrs["style"]
    assert file["/rng"].attrs["seed"] == 7

if shutil.which("h5dump") is None:
    skip("h5dump", "the package hdf5-tools is not installed")
for name in ("/param/exact", "/param/embedding.tokens.weight"):
    dump = subprocess.run(["h5dump", "-d", name, path], capture_output=True, text=True)
    assert dump.returncode == 0, dump.stderr
    first = expected(NAMES.index([n for n in NAMES if n[0] == name][0]), (ROWS, 512))[0][0]
    assert f"{first:g}, " in dump.stdout, dump.stdout[:2000]
print("h5py and h5dump read it")
