"""Shared code of the tests of library calls: programs that were not built for tracing do the same in each mode."""

import cases
from command import ARCTRACE, HINT, LATE, run
from tracing import TracedTest

COMPILERS = cases.shortened(("gcc", "clang"))
MODES = ("--libcall", "--nest-libcall")
# The recorder names programs that are executed under seccomp filters.
CONFINED = ": it is confined by a seccomp filter"


class PlainTest(TracedTest):
    CHECKS_VIEWS = False
    MAY_SAY = (HINT, LATE)
    MAY_LOSE = True

    def compare_modes(self, *command, compiler=None, options=(), **how):
        """Runs a command untraced, then traced in each mode: it must do the same. Returns the last traced run."""
        bare = run(*command, cwd=self.place("untraced", compiler), **how)
        traced = None
        for mode in MODES:
            with self.subTest(command=command, compiler=compiler, mode=mode):
                traced = self.record_quietly(*command, compiler=compiler, options=(mode, *options), **how)
                self.assert_same(bare, traced)
        return traced

    def compare_work(self, work, *options, place=None):
        """work(words, directory) runs commands that begin with these words in the directory, and returns what they
        did. That must be the same untraced and recorded with the options in each mode. `place` makes a
        directory. Returns what they did, and the traces."""
        place = place or (lambda: self.place("program"))
        bare = work([], place())
        traces = []
        for mode in MODES:
            with self.subTest(mode=mode):
                directory = place()
                traces.append(directory / "arctrace.data")
                record = [ARCTRACE, "record", mode, *options, "-o", str(traces[-1]), "--"]
                self.assertEqual(work(record, directory), bare)
        return bare, traces
