"""Hooks of each kind in programs whose stacks are in parts (-fsplit-stack)."""

import os

import cases
from command import run
from hooked import ShimTest
from tracing import FIXTURES


class SplitStacks(ShimTest):
    def test_little_room(self):
        """A hook needs little of a part, also where the kernel has taken the most for a handler."""
        # A hook without enough space ends the program, instead of overwriting what lies below its part.
        guarded = {**os.environ, "SPLIT_STACK_GUARD": "1"}
        untraced = run("./split", cwd=self.place("alone", "gcc"), env=guarded)
        if untraced.returncode == 77:
            self.skipTest("the processor's state is too large for such handlers")
        for options in (("--no-libcall",), ("--libcall",), ("--nest-libcall", "-a"),
                        ("--libcall", "--scope=shared")):
            with self.subTest(options=options):
                traced = self.compare("./split", compiler="gcc", options=options, env=guarded)
                self.assertEqual(traced.status, 0)
                # With -pg alone gcc calls mcount only where a function asks for more.
                if FIXTURES.name != "pg":
                    self.assert_counts(traced)


if __name__ == "__main__":
    cases.main()
