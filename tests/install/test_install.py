"""Installs a build directory, moves the tree, and builds and runs outside programs against it.

usage: test_install.py BUILD LIBDIR [unittest options]   LIBDIR: relative to the prefix
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cases

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/library"
OUTSIDE = pathlib.Path(__file__).resolve().parent / "outside"
WITHOUT_SESSION = "enabled 0 lost 0\n"
UNDER_RECORD = "enabled 1 lost 0\n"


def run(*command, **environment):
    """What the command prints; its errors go to the test's output."""
    return subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


class Install(unittest.TestCase):
    build = libdir = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        run("cmake", "--install", cls.build, "--prefix", str(cls.directory / "first"))
        # Files that contain the first path fail from here on.
        cls.prefix = cls.directory / "moved"
        (cls.directory / "first").rename(cls.prefix)
        cls.libraries = cls.prefix / cls.libdir

    def pkg_config(self, *options, package="arctrace"):
        return run("pkg-config", *options, package,
                   PKG_CONFIG_PATH=str(self.libraries / "pkgconfig")).split()

    def check_program(self, program, **environment):
        """Runs the program untraced, and recorded by the installed command."""
        self.assertEqual(run(program, **environment), WITHOUT_SESSION)
        trace = f"{program}.data"
        recorded = run(self.prefix / "bin/arctrace", "record", "-o", trace, "--", program,
                       **environment)
        self.assertEqual(recorded, UNDER_RECORD)
        self.assertIn("outside", run(self.prefix / "bin/arctrace", "report", "--view=tree", trace))

    def test_pkg_config(self):
        for source, compiler in (("outside.c", ["cc", "-std=c11"]),
                                 ("outside.cpp", ["c++", "-std=c++20"])):
            # -pie is the compiler's default; each mode reaches the library's data in its own way.
            for mode in ("-pie", "-no-pie"):
                with self.subTest(source=source, mode=mode):
                    program = self.directory / f"by-pkg-config-{source}{mode}"
                    flags = ["-fPIE"] if mode == "-pie" else ["-fno-pie"]
                    run(*compiler, *flags, mode, "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                        OUTSIDE / source, "-o", program, *self.pkg_config("--cflags", "--libs"))
                    self.check_program(program, LD_LIBRARY_PATH=str(self.libraries))

    def test_cmake_package(self):
        build = self.directory / "by-cmake"
        run("cmake", "-G", "Ninja", "-S", OUTSIDE, "-B", build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        for program in ("outside_c", "outside_cpp"):
            with self.subTest(program=program):
                self.check_program(build / program)
        self.assertRegex(run(build / "outside_reader"), r"^0\.")

    def test_an_older_cpp_is_refused_in_words(self):
        for header, package in (("arctrace.hpp", "arctrace"), ("reader.hpp", "arctrace-reader")):
            with self.subTest(header=header):
                flags = self.pkg_config("--cflags", package=package)
                done = subprocess.run(["c++", "-std=c++17", "-fsyntax-only", "-x", "c++", "-", *flags], text=True,
                                      input=f"#include <arctrace/{header}>", stderr=subprocess.PIPE, check=False)
                first = next(line for line in done.stderr.splitlines() if "error:" in line)
                self.assertIn("needs C++20", first)

    def record_list(self, name):
        trace = self.directory / name
        run(self.prefix / "bin/arctrace", "record", "-o", trace, "--", "ls", "/")
        return trace

    def test_examples_of_the_reader_library(self):
        trace = self.record_list("read.data")
        flat = json.loads(run(self.prefix / "bin/arctrace", "report", "--view=flat", "--format=json", trace))
        for source, compiler, arguments in (("hot_calls.c", ["cc", "-std=c11"], [trace]),
                                            ("slow_calls.cpp", ["c++", "-std=c++20"], [trace, "*"])):
            with self.subTest(source=source):
                program = self.directory / f"example-{source}"
                run(*compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", EXAMPLES / source, "-o", program,
                    *self.pkg_config("--cflags", "--libs", package="arctrace-reader"))
                printed = run(program, *arguments, LD_LIBRARY_PATH=str(self.libraries))
                if source == "hot_calls.c":
                    first = flat["functions"][0]
                    self.assertEqual(printed.splitlines()[1].split(None, 3),
                                     [str(first[key]) for key in ("calls", "base_ns", "cum_ns", "name")])

    def test_programs_of_the_guide(self):
        """docs/guide/library.md, "An installed prefix": one writes, and two in different languages read the same."""
        rpath = f"-Wl,-rpath,{self.libraries}"
        serve, calls, trace = (self.directory / name for name in ("guide-serve", "guide-calls", "guide.data"))
        run("cc", EXAMPLES / "serve.c", "-o", serve, *self.pkg_config("--cflags", "--libs"), rpath)
        run(self.prefix / "bin/arctrace", "record", "--no-libcall", "-o", trace, "--", serve)
        run("c++", "-std=c++20", EXAMPLES / "calls.cpp", "-o", calls,
            *self.pkg_config("--cflags", "--libs", package="arctrace-reader"), rpath)
        printed = run(calls, trace)
        self.assertRegex(printed, r"\A(serve: \d+ ns\n){3}\Z")
        packages = self.prefix / "lib/python3/dist-packages"
        if (packages / "arctrace").exists():
            self.assertEqual(run("/usr/bin/python3", "-B", EXAMPLES.parent / "python/calls.py", trace,
                                 PYTHONPATH=str(packages)), printed.replace(":", ""))

    def test_installed_python_module(self):
        packages = self.prefix / "lib/python3/dist-packages"
        if not (packages / "arctrace").exists():
            self.skipTest("the Python module is not built")
        trace = self.record_list("python.data")
        printed = run("/usr/bin/python3", "-B", "-c", "import arctrace, sys; t = arctrace.open(sys.argv[1]); t.scan(); "
                      "print(t.facts['records'] > 0, arctrace.__version__)", trace, PYTHONPATH=str(packages))
        self.assertEqual(printed.split(), ["True", *self.pkg_config("--modversion", package="arctrace-reader")])

    def test_installed_python_module_records_functions(self):
        program = self.directory / "program.py"
        program.write_text("def called(): pass\ncalled()\n", encoding="utf-8")
        trace = self.directory / "functions.data"
        run(self.prefix / "bin/arctrace", "record", "--no-libcall", "-o", trace, "--", "/usr/bin/python3", "-B", "-m",
            "arctrace_python", program, PYTHONPATH=str(self.prefix / "lib/python3/dist-packages"))
        self.assertIn("py:__main__.called", run(self.prefix / "bin/arctrace", "report", "--view=tree", trace))

    def test_command_uses_the_installed_shim(self):
        program = self.directory / "instrumented"
        subprocess.run(["cc", "-finstrument-functions", "-x", "c", "-", "-o", program], text=True,
                       input="void called(void) {} int main(void) { called(); }", check=True)
        trace = self.directory / "instrumented.data"
        preloaded = run(self.prefix / "bin/arctrace", "record", "-o", trace, "--", "sh", "-c",
                        f"{program} && echo $LD_PRELOAD")
        self.assertTrue(preloaded.startswith(f"{self.libraries}/libarctrace-shim.so"), preloaded)
        self.assertIn("called", run(self.prefix / "bin/arctrace", "report", "--view=tree", trace))

    def test_versions_agree(self):
        version = self.pkg_config("--modversion")[0]
        self.assertIn(version, run(self.prefix / "bin/arctrace", "--version"))
        package = self.libraries / "cmake/Arctrace/ArctraceConfigVersion.cmake"
        self.assertIn(f'set(PACKAGE_VERSION "{version}")', package.read_text(encoding="utf-8"))

    def test_no_path_of_the_build_is_left(self):
        for path in sorted(self.prefix.rglob("*")):
            if path.suffix in (".cmake", ".pc", ".h", ".hpp"):
                text = path.read_text(encoding="utf-8")
                self.assertNotIn(str(self.directory), text, path)
                self.assertNotIn(self.build, text, path)


if __name__ == "__main__":
    Install.build, Install.libdir = sys.argv[1:3]
    cases.main(sys.argv[3:])
