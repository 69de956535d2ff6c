"""perl's own tests of the language and of its input and output, by Debian's perl."""

import pathlib

import suites

DIRECTORIES = ("base", "cmd", "comp", "io", "re", "op", "uni", "mro", "class")
# These need a built tree, or minutes.
LEFT_OUT = {"op/magic.t", "re/uniprops*.t", "op/time_loop.t", "re/speed.t"}
LIBRARIES = ("/usr/share/perl/5.36", "/usr/lib/x86_64-linux-gnu/perl/5.36",
             "/usr/lib/x86_64-linux-gnu/perl-base")
VARIES = rb"0x[0-9a-f]{6,}|\b\d{3,7}\b|tmp_?\w+"


class Perl(suites.Suite):
    name = "perl"
    seconds = 100

    def prepare(self):
        if not all(pathlib.Path(path).is_dir() for path in LIBRARIES):
            raise suites.Unavailable("Debian's perl 5.36 is not installed")
        self.source = self.fetch("perl")
        # The tests take ../lib for a library that was built.
        library = self.source / "lib"
        if library.is_dir() and not (self.source / "lib.source").exists():
            library.rename(self.source / "lib.source")
        if not library.exists():
            part = self.source / "lib.part"
            part.mkdir(exist_ok=True)
            for path in LIBRARIES:
                self.build(["cp", "-rsn", f"{path}/.", "."], part)
            part.rename(library)

    def programs(self):
        directory = self.source / "t"
        tests = [test for name in DIRECTORIES for test in directory.glob(f"{name}/*.t")
                 if not any(test.match(f"{left}") for left in LEFT_OUT)]
        for test in self.some(tests):
            name = str(test.relative_to(directory))
            yield suites.Program(name, ["/usr/bin/perl", name], directory,
                                 {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}, VARIES)
