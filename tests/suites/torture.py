"""gcc's own programs for its optimizers (gcc.c-torture/execute): each aborts if a value is wrong.

They are odd in every way that C allows: arguments and results of each size, nested functions,
computed jumps, alloca, builtins, __builtin_return_address, __builtin_setjmp.
"""

import suites


class Torture(suites.Suite):
    name = "torture"
    seconds = 20

    def prepare(self):
        self.sources = self.place / "execute"
        if self.sources.is_dir():
            return
        package = self.fetch("gcc-12-source", binary=True)
        archive = next(package.glob("usr/src/gcc-12/gcc-*.tar.xz"), None)
        if archive is None:
            raise suites.Unavailable("gcc-12-source has no archive")
        part = self.place / "part"
        part.mkdir(exist_ok=True)
        self.build(["tar", "-xf", archive, "-C", part, "--strip-components=4", "--wildcards",
                    "*/gcc/testsuite/gcc.c-torture/execute"], self.place)
        (part / "execute").rename(self.sources)

    def programs(self):
        built = self.place / "built"
        built.mkdir(exist_ok=True)
        for source in self.some(self.sources.rglob("*.c")):
            name = str(source.relative_to(self.sources))
            for hook, flags in suites.HOOKS.items():
                program = self.compile(source, built / f"{name.replace('/', '-')}-{hook}", flags)
                if program is not None:
                    yield suites.Program(f"{name} {hook}", [program], built)

    def compile(self, source, program, flags):
        """The program; None: it is for another machine, or for other options."""
        options = ["-std=gnu99", "-O2", "-w", "-fno-inline", *flags]
        try:
            self.build_file(program, ["gcc", *options, source, "-lm"], program.parent)
        except suites.Unavailable:
            return None
        return program
