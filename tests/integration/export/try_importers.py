"""Libraries of others for JavaScript, speedscope's importers and pprof-format, read the exports; their
sums must be the report's. tools/try-exports runs it, which sets ARCTRACE_NPM."""

import collections
import json
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "harness"), str(HERE.parent)]

import test_export  # noqa: E402
from command import read_report, run  # noqa: E402

READ_BY_SPEEDSCOPE = ("speedscope", "chrome", "pprof", "folded")
NS_IN_UNIT = {"nanoseconds": 1, "microseconds": 1000, "none": 1}


class Importers(test_export.ExportTest):
    def importers(self, trace):
        """What each importer found, by format."""
        files = {}
        for form in READ_BY_SPEEDSCOPE:
            files[form] = self.directory / f"out.{form}"
            self.export(trace, form)
        found = json.loads(run("node", HERE / "importers.mjs", os.environ["ARCTRACE_NPM"], *files.values(),
                               check=True).stdout)
        return {form: found[str(file)] for form, file in files.items()}

    def test_sums_are_those_of_the_report(self):
        trace = self.record_program()
        found = self.importers(trace)
        expected = {name: base_ns for name, (_, base_ns) in self.sums_of_report(trace).items()}
        for form in READ_BY_SPEEDSCOPE:
            with self.subTest(form=form):
                own_ns = collections.Counter()
                for profile in found[form][0]["profiles"]:
                    for name, weight in profile["self"].items():
                        # speedscope adds the args of an event to its name.
                        own_ns[name.split(" {")[0]] += weight * NS_IN_UNIT[profile["unit"]]
                for name, base_ns in expected.items():
                    if form == "folded":
                        name = name.replace(";", ":")
                    # speedscope adds microseconds in floating point.
                    self.assertAlmostEqual(own_ns[name], base_ns, delta=base_ns * 1e-6 + 5,
                                           msg=name)
                wrong = [c for c in found[form][0]["complaints"] if "Tried to end" in c]
                self.assertEqual(wrong, [])
        of_pprof = found["pprof"][1]
        self.assertEqual(of_pprof["types"], ["calls", "wall"])
        for name, (calls, base_ns) in self.sums_of_report(trace).items():
            self.assertEqual(of_pprof["self"][name], [calls, base_ns], name)

    def test_threads_have_profiles_of_their_own(self):
        trace = self.record_program()
        found = self.importers(trace)
        threads = {(row["pid"], row["tid"]) for row in read_report(trace, "tree")["threads"]
                   if row["root"]["children"]}
        names = {profile["name"] for profile in found["speedscope"][0]["profiles"]}
        self.assertTrue(all(any(name.endswith(f" {pid}/{tid}") for name in names)
                            for pid, tid in threads), (names, threads))


def load_tests(loader, _tests, _pattern):
    """Loads only this file's tests: those of the class that it derives from run by themselves."""
    return unittest.TestSuite(
        Importers(name) for name in vars(Importers) if name.startswith("test_"))


if __name__ == "__main__":
    unittest.main()
