"""zlib's own example and minigzip, built with each kind of hook, and as a shared library."""

import shutil

import suites


class Zlib(suites.Suite):
    name = "zlib"

    def prepare(self):
        source = self.fetch("zlib")
        for hook, flags in suites.HOOKS.items():
            directory = self.place / hook
            if directory.exists():
                continue
            part = self.place / "part"
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(source, part, symlinks=True)
            self.build(["./configure"], part, CFLAGS=" ".join(("-O2", *flags)))
            self.build(["make", "-j2", "example", "examplesh", "minigzip", "minigzipsh"], part)
            part.rename(directory)

    def programs(self):
        for hook in suites.HOOKS:
            directory = self.place / hook
            here = {"LD_LIBRARY_PATH": str(directory)}
            for kind in ("", "sh"):
                yield suites.Program(f"example{kind} {hook}", [f"./example{kind}", f"of{kind}.gz"],
                                     directory, here)
                there_and_back = (f"./minigzip{kind} <deflate.c | ./minigzip{kind} -d | "
                                  "cmp - deflate.c && echo ok")
                yield suites.Program(f"minigzip{kind} {hook}", ["sh", "-c", there_and_back],
                                     directory, here)
