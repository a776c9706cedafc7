"""Each lint fails on code it must refuse, and passes the same code put right. Argument: the folder of the lints."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LINTS = pathlib.Path(sys.argv.pop())
FORMAT = "BasedOnStyle: Google\n"
TIDY = "Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\n"


class Tree:
    """A small source tree in a folder of its own, with a compile database for its .cpp files."""

    def __init__(self, folder, files):
        self.root = pathlib.Path(folder) / "tree"
        self.build = pathlib.Path(folder) / "build"
        for name in ("kernels", "comm", "io", "model", "app", "tests"):
            (self.root / name).mkdir(parents=True)
        self.build.mkdir()
        self.write(".clang-format", FORMAT)
        self.write(".clang-tidy", TIDY)
        for path, text in files.items():
            self.write(path, text)
        database = [
            {
                "directory": str(self.build),
                "file": str(self.root / path),
                "command": f"/usr/bin/c++ -I{self.root} -std=c++20 -o x.o -c {self.root / path}",
            }
            for path in files
            if path.endswith(".cpp")
        ]
        (self.build / "compile_commands.json").write_text(json.dumps(database), encoding="utf-8")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def run(lint, *arguments):
    interpreter = "bash" if lint.endswith(".sh") else sys.executable
    return subprocess.run(
        [interpreter, str(LINTS / lint), *map(str, arguments)], capture_output=True, text=True, check=False
    )


class BadCodeTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        os.environ["XDG_CACHE_HOME"] = self.scratch.name

    def tree(self, files):
        return Tree(tempfile.mkdtemp(dir=self.scratch.name), files)

    def refused(self, files, path, why):
        """The include lint names the file and the reason."""
        result = run("includes.py", self.tree(files).root)
        self.assertEqual(result.returncode, 1, result.stdout)
        line = next((line for line in result.stdout.splitlines() if line.startswith(path + ": ")), "")
        self.assertIn(why, line, result.stdout)

    def test_an_include_that_points_up_is_refused(self):
        header = {"model/a.hpp": "", "comm/b.hpp": '#include "model/a.hpp"\n'}
        self.refused(header, "comm/b.hpp", '"model/a.hpp"')

    def test_io_and_model_may_not_include_each_other(self):
        files = {"io/a.hpp": '#include "model/b.hpp"\n', "model/b.hpp": ""}
        self.refused(files, "io/a.hpp", '"model/b.hpp"')
        files = {"model/a.hpp": '#include "io/b.hpp"\n', "io/b.hpp": ""}
        self.refused(files, "model/a.hpp", '"io/b.hpp"')

    def test_nothing_outside_tests_includes_tests(self):
        self.refused({"app/a.cpp": '#include "tests/b.hpp"\n', "tests/b.hpp": ""}, "app/a.cpp", '"tests/b.hpp"')

    def test_detail_belongs_to_its_folder(self):
        files = {"io/a.cpp": '#include "comm/detail/b.hpp"\n', "comm/detail/b.hpp": ""}
        self.refused(files, "io/a.cpp", "detail/")

    def test_own_headers_are_named_from_the_root(self):
        self.refused({"io/a.cpp": '#include "b.hpp"\n', "io/b.hpp": ""}, "io/a.cpp", '"b.hpp"')

    def test_a_foreign_header_out_of_its_place_is_refused(self):
        self.refused({"model/a.cpp": "#include <mpi.h>\n"}, "model/a.cpp", "<mpi.h>")
        self.refused({"kernels/base/a.hpp": "#include <Kokkos_Core.hpp>\n"}, "kernels/base/a.hpp", "<Kokkos_Core.hpp>")

    def test_an_unknown_foreign_header_is_refused(self):
        self.refused({"io/a.cpp": "#include <boost/any.hpp>\n"}, "io/a.cpp", "does not know it")

    def test_a_library_of_one_file_pair_may_not_spread(self):
        files = {"io/a.cpp": "#include <zlib.h>\n", "io/b.cpp": "#include <zlib.h>\n"}
        self.refused(files, "io", "one file pair")

    def test_planning_may_not_reach_mpi(self):
        files = {"model/plan/a.hpp": '#include "comm/mpi/b.hpp"\n', "comm/mpi/b.hpp": "#include <mpi.h>\n"}
        self.refused(files, "model/plan/a.hpp", "reaches <mpi.h>")

    def test_allowed_includes_pass(self):
        files = {
            "io/a.cpp": '#include "io/a.hpp"\n#include <zlib.h>\n#include <vector>\n',
            "io/a.hpp": '#include "comm/mpi/b.hpp"\n',
            "comm/mpi/b.hpp": "#include <mpi.h>\n",
        }
        result = run("includes.py", self.tree(files).root)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_an_empty_tree_is_refused(self):
        self.assertEqual(run("includes.py", self.tree({}).root).returncode, 1)

    def test_a_header_that_leans_on_others_is_refused(self):
        tree = self.tree({"io/a.hpp": "#pragma once\nstd::string text();\n", "io/a.cpp": "int a;\n"})
        result = run("headers.py", tree.root, tree.build)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("io/a.hpp does not compile alone", result.stdout)
        tree.write("io/a.hpp", "#pragma once\n#include <string>\nstd::string text();\n")
        result = run("headers.py", tree.root, tree.build)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_badly_formatted_file_is_refused(self):
        tree = self.tree({"io/a.cpp": "int  a ;\n"})
        result = run("format.sh", tree.root)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("io/a.cpp", result.stderr)
        tree.write("io/a.cpp", "int a;\n")
        result = run("format.sh", tree.root)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_tidy_refuses_remembers_and_looks_again_when_a_header_changes(self):
        tree = self.tree({"io/a.hpp": "inline int* a() { return 0; }\n", "io/a.cpp": '#include "io/a.hpp"\n'})
        tree.write(".clang-tidy", TIDY + "HeaderFilterRegex: 'io/.*'\n")
        result = run("tidy.py", tree.root, tree.build)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("modernize-use-nullptr", result.stdout)
        tree.write("io/a.hpp", "inline int* a() { return nullptr; }\n")
        self.assertIn("0 passed before, 0 failed", run("tidy.py", tree.root, tree.build).stdout)
        self.assertIn("1 passed before, 0 failed", run("tidy.py", tree.root, tree.build).stdout)
        tree.write("io/a.hpp", "inline int* a() { return 0; }\n")
        self.assertEqual(run("tidy.py", tree.root, tree.build).returncode, 1)


if __name__ == "__main__":
    unittest.main()
