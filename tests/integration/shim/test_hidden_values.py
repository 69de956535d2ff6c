"""The recorder names functions whose hooks don't see their arguments and results."""

import cases
from command import arctrace
from hooked import ShimTest


class HiddenValues(ShimTest):
    def warnings(self, *options):
        done = arctrace("record", *options, "./jumps", cwd=self.place("hidden", "gcc"))
        self.assertEqual(done.returncode, 7)
        return [line for line in done.stderr.splitlines() if "warning" in line]

    def test_given_functions(self):
        for option, spec in (("-A", "through*"), ("-A", "through*@arg1/i32"),
                             ("-R", "through*@retval")):
            pattern = spec.split("@", 1)[0]
            self.assertEqual(self.warnings(option, spec), [
                f"arctrace: warning: {option} {pattern}: -finstrument-functions hides what "
                "functions are given and return: through_pointer, through_pointer_too; "
                "-pg -mfentry and -fpatchable-function-entry=5 do not"])

    def test_others(self):
        self.assertEqual(self.warnings("-A", "puts@arg1/s", "-a", "-R", "puts"), [])


if __name__ == "__main__":
    cases.main()
