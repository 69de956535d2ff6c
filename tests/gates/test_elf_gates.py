"""Tests the two libraries by the gates, and the gates by libraries with each fault.

usage: test_elf_gates.py LIBARCTRACE LIBARCTRACE_SHIM [unittest options]
"""

import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest

import cases
import elf_gates

HERE = pathlib.Path(__file__).resolve().parent
GLIBC = "2.17"  # makes the loader accept them; docs/guide/limits.md names it
LIBC = {"libc.so.6"}  # musl stands in for that itself, but has no ld-linux


def listed(name):
    return set((HERE / name).read_text(encoding="utf-8").split())


class Gates:
    """The gates of one library; subclasses say which."""

    library = None
    exports = None
    allowed = LIBC
    soname = None

    def listed(self, name):
        """The names in the list, with those that only one machine's library has."""
        of_machine = f"{pathlib.Path(name).stem}_{elf_gates.machine(self.library)}.txt"
        return listed(name) | (listed(of_machine) if (HERE / of_machine).exists() else set())

    def test_exports(self):
        self.assertEqual(elf_gates.exports(self.library, self.listed(self.exports)), [])

    def test_imports(self):
        self.assertEqual(elf_gates.imports(self.library, self.listed("imports.txt")), [])

    def test_versions(self):
        self.assertEqual(elf_gates.versions(self.library, GLIBC), [])

    def test_needed(self):
        self.assertEqual(elf_gates.needed(self.library, self.allowed), [])

    def test_soname(self):
        self.assertEqual(elf_gates.soname(self.library, self.soname), [])

    def test_text_relocations(self):
        self.assertEqual(elf_gates.text_relocations(self.library), [])

    def test_pages_at_start(self):
        self.assertEqual(elf_gates.pages_at_start(self.library, 4), [])

    def test_not_unloadable(self):
        self.assertEqual(elf_gates.not_unloadable(self.library), [])

    def test_bound_at_load(self):
        self.assertEqual(elf_gates.bound_at_load(self.library), [])

    def test_static_tls(self):
        self.assertEqual(elf_gates.static_tls(self.library), [])

    def test_executable_stack(self):
        self.assertEqual(elf_gates.executable_stack(self.library), [])

    def test_vector_instructions(self):
        self.assertEqual(elf_gates.vector_instructions(self.library), [])


class Arctrace(Gates, unittest.TestCase):
    exports = "exports_arctrace.txt"
    soname = "libarctrace.so.0"

    def test_unversioned(self):
        self.assertEqual(elf_gates.unversioned(self.library, "ARCTRACE_0", "ARCTRACE_PRIVATE"), [])


class Shim(Gates, unittest.TestCase):
    exports = "exports_shim.txt"
    soname = "libarctrace-shim.so"
    allowed = LIBC | {"libarctrace.so.0"}


class FaultyLibraries(unittest.TestCase):
    compiler = "gcc"

    def library(self, text, *options):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = pathlib.Path(directory.name, "libfault.so")
        subprocess.run(
            [self.compiler, "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", path, *options],
            input=text, text=True, check=True,
        )
        return path

    def vector_functions(self, text):
        return {finding.split(" in ")[1].split(":")[0]
                for finding in elf_gates.vector_instructions(self.library(text))}


class GatesFindFaults(FaultyLibraries):
    """Libraries with one fault each: a gate that lets one through is no gate."""

    def test_exports(self):
        path = self.library("int wanted; void extra(void) {}")
        self.assertEqual(elf_gates.exports(path, {"wanted", "absent"}), [
            "exported, but not in the list: extra", "in the list, but not exported: absent"])

    def test_imports(self):
        path = self.library("int on_exit(void*, void*); int f(void) { return on_exit(f, 0); }")
        self.assertEqual(elf_gates.imports(path, listed("imports.txt")), ["imports on_exit"])

    def test_unversioned(self):
        path = self.library("void f(void) {} void arctrace_shim_f(void) {}")
        self.assertCountEqual(elf_gates.unversioned(path, "A", "B"),
                         ["f has the version none, not A", "arctrace_shim_f has the version none, not B"])

    def test_versions(self):
        path = self.library("""void *dlsym(void *, const char *); void *f(void) { return dlsym(0, "f"); }
                               extern int _dl_find_object(void *, void *) __attribute__((weak));
                               int g(void) { return _dl_find_object != 0; }""")
        self.assertEqual(elf_gates.versions(path, "2.28"), ["needs glibc 2.34", "needs glibc 2.35"])
        self.assertEqual(elf_gates.versions(path, "2.34"), ["needs glibc 2.35"])

    def test_needed(self):
        path = self.library("", "-Wl,--no-as-needed", "-lm")
        self.assertEqual(elf_gates.needed(path, LIBC), ["needs libm.so.6"])

    def test_soname(self):
        self.assertTrue(elf_gates.soname(self.library("", "-Wl,-soname,a.so"), "b.so"))
        self.assertTrue(elf_gates.soname(self.library(""), "b.so"))

    def test_pages_at_start(self):
        path = self.library("char table[4 * 4096];")
        self.assertRegex(elf_gates.pages_at_start(path, 4)[0], "^[56] pages")
        path = self.library("""__attribute__((section(".bss.large"))) char table[4 * 4096];""",
                            f"-Wl,-T,{HERE.parent.parent / 'cmake/large_tables.ld'}")
        self.assertEqual(elf_gates.pages_at_start(path, 4), [])

    def test_text_relocations(self):
        path = self.library("int f(void); int g(void) { return f(); }",
                            "-fno-pic", "-mcmodel=large", "-Wl,-z,notext")
        self.assertEqual(elf_gates.text_relocations(path), ["has text relocations"])

    def test_not_unloadable(self):
        self.assertTrue(elf_gates.not_unloadable(self.library("")))

    def test_bound_at_load(self):
        self.assertTrue(elf_gates.bound_at_load(self.library("", "-Wl,-z,lazy")))

    def test_static_tls(self):
        path = self.library("__thread int here; int get(void) { return here; }",
                            "-ftls-model=global-dynamic")
        findings = elf_gates.static_tls(path)
        self.assertIn("has thread-locals, but no STATIC_TLS", findings)
        self.assertTrue(any(f.startswith("dynamic thread-local") for f in findings), findings)

    def test_executable_stack(self):
        self.assertTrue(elf_gates.executable_stack(self.library("", "-Wl,-z,execstack")))

    @unittest.skipUnless(platform.machine() == "x86_64", "knows x86-64's registers only")
    def test_vector_instructions(self):
        found = self.vector_functions("""
            double sse(double a) { return a * 2; }
            long double x87(long double a) { return a * 2; }
            void control(unsigned *c) { __asm__ volatile("stmxcsr %0" : "=m"(*c)); }
            void reset(void) { __asm__ volatile("fninit"); }
            void mask(void) { __asm__ volatile("kxnorb %k1, %k1, %k1"); }
            __attribute__((tls_model("initial-exec"))) __thread long in_fs_segment;
            long general(long a) { return a * 2 + in_fs_segment; }""")
        self.assertEqual(found, {"sse", "x87", "control", "reset", "mask"})


class AArch64FindsFaults(FaultyLibraries):
    """The gate that knows registers finds them in the cross-built libraries, too."""

    compiler = "aarch64-linux-gnu-gcc"

    def test_vector_instructions(self):
        found = self.vector_functions("""
            double scalar(double a) { return a * 2; }
            void moves(long *a, long *b) { __asm__("ldp q0, q1, [%0]; stp q0, q1, [%1]"
                                                   :: "r"(a), "r"(b)); }
            long rounding(void) { long r; __asm__("mrs %0, fpcr" : "=r"(r)); return r; }
            void scalable(void) { __asm__(".arch armv8-a+sve; add z1.s, z2.s, z3.s"); }
            extern long other(long);
            long general(long a) { while (other(a) > 0xd0) a += other(a * 2); return a; }""")
        self.assertEqual(found, {"scalar", "moves", "rounding", "scalable"})


if __name__ == "__main__":
    Arctrace.library, Shim.library = sys.argv[1:3]
    cases.main(sys.argv[3:])
