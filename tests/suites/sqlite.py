"""SQLite's own programs in C, built with kinds of hooks: what its fuzzer has found, a benchmark,
and a test of large values. The suite in Tcl is not run."""

import shutil

import suites

# This one takes a second untraced; the others take up to minutes.
CASES = "fuzzdata6.db"
VARIES = rb"\d+\.\d+s?|0x[0-9a-f]+|inf|Content read rate.*"


class Sqlite(suites.Suite):
    name = "sqlite"
    seconds = 200

    def prepare(self):
        if shutil.which("tclsh") is None:
            raise suites.Unavailable("tclsh, by which SQLite's source is put together, "
                                     "is not installed")
        source = self.fetch("sqlite3")
        self.built = self.place / "source"
        if not self.built.exists():
            part = self.place / "part"
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(source, part, symlinks=True)
            self.build(["./configure", "--disable-tcl"], part)
            self.build(["make", "sqlite3.c"], part)
            part.rename(self.built)
        self.chosen = self.some(suites.HOOKS)
        for hook in self.chosen:
            self.build_with(hook)

    def build_with(self, hook):
        directory = self.place / hook
        if (directory / "done").exists():
            return
        directory.mkdir(exist_ok=True)
        options = ["-O1", "-w", "-pthread", "-I", self.built, "-DSQLITE_ENABLE_FTS4",
                   "-DSQLITE_ENABLE_RTREE", "-DSQLITE_ENABLE_DBPAGE_VTAB", *suites.HOOKS[hook]]
        test = self.built / "test"
        recover = self.built / "ext/recover"
        programs = {"fuzzcheck": [test / "fuzzcheck.c", test / "ossfuzz.c",
                                  test / "fuzzinvariants.c", test / "vt02.c",
                                  recover / "sqlite3recover.c", recover / "dbdata.c",
                                  "-DSQLITE_OSS_FUZZ", "-DSQLITE_CORE", "-I", recover],
                    "speedtest": [test / "speedtest1.c"], "kvtest": [test / "kvtest.c"]}
        self.build(["gcc", *options, "-c", self.built / "sqlite3.c", "-o", "sqlite3.o"], directory)
        for name, sources in programs.items():
            self.build(["gcc", *options, *sources, "sqlite3.o", "-o", name, "-lm", "-ldl"],
                       directory)
        (directory / "done").touch()

    def programs(self):
        for hook in self.chosen:
            directory = self.place / hook
            fresh = "rm -f $0.db*; "
            yield suites.Program(f"fuzzcheck {CASES} {hook}",
                                 ["./fuzzcheck", "-q", self.built / "test" / CASES],
                                 directory, varies=VARIES)
            for name, commands in (
                    ("speedtest", "./speedtest --size 2 --nosync $0.db"),
                    ("kvtest", "./kvtest init $0.db --count 200 --size 500 && "
                               "./kvtest run $0.db --count 200 --blob-api --random")):
                yield suites.Program(f"{name} {hook}", ["sh", "-c", fresh + commands, name],
                                     directory, varies=VARIES)
