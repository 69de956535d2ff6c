"""glibc's own tests of threads, cancellation and jumps, as far as they build without a built tree
of glibc; each plainly and with one kind of hook."""

import pathlib
import re

import suites

DIRECTORIES = ("nptl", "setjmp", "sysdeps/pthread")
# These take minutes, measure the machine, write in no certain order, or print the frames of their
# stack (the last one), among which are those of recorded calls.
LEFT_OUT = ("tst-mutex-trylock-deadlock", "tst-rwlock-pwn", "tst-create-detached", "tst-eintr1",
            "tst-thread-exit-clobber", "tst-sem17", "tst-rwlock4", "tst-rwlock8", "tst-rwlock10",
            "tst-cond2", "tst-cond-except", "tst-create1", "tst-eintr4", "tst-backtrace1")
VARIES = rb"0x[0-9a-f]+|\b\d{3,}\b"


class Glibc(suites.Suite):
    name = "glibc"
    seconds = 60

    def prepare(self):
        self.source = self.fetch("glibc")
        headers = self.place / "headers"
        headers.mkdir(exist_ok=True)
        # These are the source's headers that the tests need; the others are for glibc itself.
        for name in ("support", "include/intprops.h", "include/array_length.h",
                     "include/libc-diag.h", "sysdeps/x86_64/stackinfo.h"):
            header = headers / pathlib.Path(name).name
            if not header.exists():
                header.symlink_to(self.source / name)
        self.options = ["-O1", "-w", "-pthread", "-std=gnu11", "-D_GNU_SOURCE",
                        "-DMODULE_NAME=testsuite", "-DTIMEOUTFACTOR=1", "-include", "limits.h",
                        *(f'-D{path}_PATH="/nowhere"' for path in
                          ("SRCDIR", "OBJDIR", "OBJDIR_ELF_LDSO", "INSTDIR", "LIBDIR", "BINDIR",
                           "SBINDIR", "ROOTSBINDIR", "COMPLOCALEDIR", "SYSCONFDIR", "SLIBDIR")),
                        "-I", headers, "-I", self.source / "support", "-iquote", self.source,
                        "-iquote", self.source / "nptl"]
        self.archive = self.place / "support.a"
        if self.archive.exists():
            return
        objects = self.place / "support"
        objects.mkdir(exist_ok=True)
        for source in sorted((self.source / "support").glob("*.c")):
            if not source.stem.startswith(("tst-", "test-")):
                self.compile(source, objects / f"{source.stem}.o", "-c")
        part = self.archive.with_suffix(".part")
        part.unlink(missing_ok=True)
        self.build(["ar", "rc", part, *sorted(objects.glob("*.o"))], objects)
        part.rename(self.archive)

    def compile(self, source, target, *options):
        """Whether the test can be built here."""
        libraries = [] if "-c" in options else [self.archive, "-lm", "-ldl"]
        try:
            self.build_file(target, ["gcc", *self.options, *options, source, *libraries],
                            source.parent)
        except suites.Unavailable:
            return False
        return True

    def programs(self):
        built = self.place / "built"
        built.mkdir(exist_ok=True)
        tests = [test for directory in DIRECTORIES
                 for test in (self.source / directory).glob("*.c")
                 if test.stem.startswith(("tst-", "jmpbug", "bug269")) and
                 re.search(r"mod\d*$", test.stem) is None and test.stem not in LEFT_OUT]
        for test in self.some(tests):
            for hook in ("plain", self.random.choice(sorted(set(suites.HOOKS) - {"plain"}))):
                program = built / f"{test.parent.name}-{test.stem}-{hook}"
                unwinds = ["-fexceptions"] if "x" in test.stem.removeprefix("tst-") else []
                if self.compile(test, program, *suites.HOOKS[hook], *unwinds):
                    yield suites.Program(f"{test.parent.name}/{test.name} {hook}",
                                         [program, "--direct"], built, varies=VARIES)
