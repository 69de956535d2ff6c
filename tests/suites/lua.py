"""Lua's own programs (those of 5.1: later sources have none) and LPeg's tests, in interpreters that
are built with each kind of hook. Lua's own suite is not in Debian."""

import suites

# They read the terminal or never end, or need a tracing library or luac's output.
LEFT_OUT = ("luac", "readonly", "trace-calls", "trace-globals", "xd", "life")
VARIES = rb"0x[0-9a-f]+|\d+\.\d{2,}|\t0(?:\.\d+)?\t"


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
            if (directory / "lpeg.so").exists():
                continue
            directory.mkdir(exist_ok=True)
            options = ["-O2", "-w", *flags, "-I", self.source / "src", "-I", self.place]
            self.build(["gcc", *options, "-DLUA_USE_POSIX", "-DLUA_USE_DLOPEN", *core, "-o", "lua",
                        "-Wl,-E", "-lm", "-ldl"], directory)
            self.build(["gcc", *options, "-shared", "-fPIC", *lpeg, "-o", "lpeg.so"], directory)

    def programs(self):
        inputs = {"sieve": ["100"], "fib": ["20"], "echo": ["one", "two"], "cf": [], "sort": []}
        for hook in suites.HOOKS:
            lua = self.place / hook / "lua"
            for test in sorted((self.source / "test").glob("*.lua")):
                if test.stem not in LEFT_OUT:
                    yield suites.Program(f"{test.name} {hook}",
                                         [lua, test, *inputs.get(test.stem, [])],
                                         self.source / "test", varies=VARIES)
            yield suites.Program(f"lpeg {hook}", [lua, "test.lua"], self.lpeg,
                                 {"LUA_CPATH": str(self.place / hook / "?.so")}, VARIES)
