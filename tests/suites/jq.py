"""jq's own tests, by Debian's jq."""

import shutil

import suites


class Jq(suites.Suite):
    name = "jq"

    def prepare(self):
        self.jq = shutil.which("jq", path="/usr/bin")
        if self.jq is None:
            raise suites.Unavailable("Debian's jq is not installed")
        self.source = self.fetch("jq")

    def programs(self):
        directory = self.source / "tests"
        for test in sorted(directory.glob("*.test")):
            yield suites.Program(test.name, [self.jq, "-L", directory / "modules", "--run-tests",
                                             test], directory)
