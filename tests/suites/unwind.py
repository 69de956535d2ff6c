"""libunwind's own tests: its unwinder, local and remote, through our frames."""

import os
import shutil

import suites

# These need minutes.
LEFT_OUT = ("perf", "Lperf", "Gperf", "race", "bench")
VARIES = (rb"0x[0-9a-f]{4,}|\b[0-9a-f]{8,16}\b|\b\d{2,}\b|"
          rb"offset = \w*|"  # x64-unwind-badjmp-signal-frame prints one that it never set
          rb"ip=\w+, sp=\w+ -> 1\n")  # lines of Ltest-mem-validate, as many as fit into its page


class Unwind(suites.Suite):
    name = "libunwind"
    seconds = 60

    def prepare(self):
        source = self.fetch("libunwind")
        self.built = self.place / "built"
        if (self.built / "done").exists():
            return
        shutil.rmtree(self.built, ignore_errors=True)
        shutil.copytree(source, self.built, symlinks=True)
        self.build(["./configure", "--disable-documentation", "--disable-minidebuginfo"],
                   self.built, CFLAGS="-O2 -g -w", CXXFLAGS="-O2 -g -w")
        self.build(["make", "-j2"], self.built)
        self.build(["make", "-j2", "-C", "tests", "check", "TESTS="], self.built)
        (self.built / "done").touch()

    def programs(self):
        tests = self.built / "tests"
        for test in sorted(tests.iterdir()):
            name = test.name
            is_program = test.is_file() and os.access(test, os.X_OK) and "." not in name
            if not is_program or any(left in name for left in LEFT_OUT):
                continue
            yield suites.Program(name, [f"./{name}"], tests, {"srcdir": "."},
                                 VARIES)
