"""Functions that two hooks would record, of different kinds: each call is recorded once."""

import cases
import test_calls
from hooked import ShimTest, both_compilers
from tracing import FIXTURES


def pairs(compiler, program):
    return sorted(path.name for path in (FIXTURES / compiler).glob(f"{program}_*"))


class Pairs(ShimTest):
    @both_compilers
    def test_two_kinds_in_one_function(self, compiler):
        programs = pairs(compiler, "jumps")
        self.assertEqual(len(programs), 5 if compiler == "gcc" else 7)
        for program in programs:
            with self.subTest(program=program):
                traced = self.compare(f"./{program}", compiler=compiler)
                self.assert_counts(traced)
                self.assertEqual(traced.paths(), test_calls.JUMPS)

    @both_compilers
    def test_library_calls_of_functions_with_hooks(self, compiler):
        for program in pairs(compiler, "pair"):
            for mode in ("--libcall", "--nest-libcall"):
                with self.subTest(program=program, mode=mode):
                    traced = self.compare(f"./{program}", compiler=compiler, options=(mode,))
                    self.assert_counts(traced)


if __name__ == "__main__":
    cases.main()
