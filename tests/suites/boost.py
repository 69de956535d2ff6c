"""The examples of Boost.Context and Boost.Coroutine2, built with each kind of hook. Each coroutine
has a stack of its own, so no exit in their traces lacks its entry."""

import suites

PACKAGE = "libboost1.74-doc"
EXAMPLES = ("coroutine2/example", "context/example/fiber", "context/example/callcc")
# These need segmented stacks, never end, or print addresses of their own code.
LEFT_OUT = ("segmented", "endless_loop", "backtrace")


class Boost(suites.Suite):
    name = "boost"
    has_no_orphans = True

    def prepare(self):
        source = self.fetch(PACKAGE, binary=True) / "usr/share/doc" / PACKAGE / "examples/libs"
        examples = [f"{directory}/{example.name}" for directory in EXAMPLES
                    for example in (source / directory).glob("*.cpp")
                    if example.stem not in LEFT_OUT]
        if not examples:
            raise suites.Unavailable(f"{PACKAGE} has no examples")
        self.chosen = [(self.built(source, example, hook), example, hook)
                       for example in self.some(examples) for hook in suites.HOOKS]

    def built(self, source, example, hook):
        """The program, or None if the example cannot be built."""
        program = self.place / f"{example.replace('/', '_')[:-len('.cpp')]}_{hook}"
        try:
            self.build_file(program, ["g++", "-std=c++17", "-O1", "-w", *suites.HOOKS[hook],
                                      source / example, "-lboost_context", "-pthread"], self.place)
        except suites.Unavailable:
            return None
        return program

    def programs(self):
        for program, example, hook in self.chosen:
            if program is not None:
                yield suites.Program(f"{example} {hook}", [program], self.place,
                                     varies=rb"0x[0-9a-f]+")
