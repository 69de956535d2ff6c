"""Lua's own programs (those of 5.1: later sources have none), in interpreters that are built with
each kind of hook, and LPeg's tests, whose library is. Lua's own suite is not in Debian."""

import suites

# These read the terminal or never end, or need a tracing library or luac's output.
LEFT_OUT = ("luac", "readonly", "trace-calls", "trace-globals", "xd", "life")
VARIES = rb"0x[0-9a-f]+|\d+(?:\.\d+)?e-\d+|\d+\.\d{2,}|(?<=\t)0(?:\.\d+)?(?=\t)"


class Lua(suites.Suite):
    name = "lua"
    seconds = 100

    def prepare(self):
        self.source = self.fetch("lua5.1")
        self.lpeg = self.fetch("lua-lpeg")
        lpeg = sorted(self.lpeg.glob("*.c"))
        core = [path for path in sorted((self.source / "src").glob("*.c"))
                if path.stem not in ("luac", "print")]
        (self.place / "lua5.1-deb-multiarch.h").write_text(
            '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"\n')
        for hook, flags in suites.HOOKS.items():
            directory = self.place / hook
            directory.mkdir(exist_ok=True)
            options = ["-O2", "-w", *flags, "-I", self.source / "src", "-I", self.place]
            self.build_file(directory / "lua", ["gcc", *options, "-DLUA_USE_POSIX",
                                                "-DLUA_USE_DLOPEN", *core, "-Wl,-E", "-lm", "-ldl"],
                            directory)
            self.build_file(directory / "lpeg.so", ["gcc", *options, "-shared", "-fPIC", *lpeg],
                            directory)

    def programs(self):
        inputs = {"sieve": ["100"], "fib": ["20"], "echo": ["one", "two"], "cf": [], "sort": []}
        for hook in suites.HOOKS:
            lua = self.place / hook / "lua"
            for test in sorted((self.source / "test").glob("*.lua")):
                if test.stem not in LEFT_OUT:
                    yield suites.Program(f"{test.name} {hook}",
                                         [lua, test, *inputs.get(test.stem, [])],
                                         self.source / "test", varies=VARIES)
            # Hooks in the interpreter, too, would give 200 million records in each mode.
            yield suites.Program(f"lpeg {hook}", [self.place / "plain/lua", "test.lua"], self.lpeg,
                                 {"LUA_CPATH": str(self.place / hook / "?.so")}, VARIES)
