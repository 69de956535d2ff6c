"""A small file of each version of the format is read whole by today's reader. Each was written by the last tree of its version;
tools/release adds that of the current version to tests/integration/formats."""

import pathlib
import subprocess
import unittest

import cases
import support

FORMATS = pathlib.Path(__file__).resolve().parent / "formats"


class Formats(support.TraceTest):
    def test_each_is_read(self):
        files = sorted(FORMATS.glob("*.trace"))
        self.assertTrue(files)
        for file in files:
            with self.subTest(file.name):
                self.check_clean(file)
                session = self.info(file)["session"]
                self.assertEqual(session["version"], file.stem)
                types = {record["type"] for record in self.dump(file)}
                self.assertLessEqual({"PROCESS", "THREAD", "MODULE", "STRING", "ENTER", "EXIT", "ARGUMENTS", "RESULT"}, types)
                self.assertTrue(self.report(file, "flat")["functions"])

    def test_a_damaged_one_is_noticed(self):
        """The check above can fail."""
        bytes_of_file = bytearray(sorted(FORMATS.glob("*.trace"))[-1].read_bytes())
        bytes_of_file[-200:-100] = bytes(100)
        damaged = self.directory / "damaged"
        damaged.write_bytes(bytes_of_file)
        done = subprocess.run([support.ARCTRACE, "check", damaged], stdout=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 1)
        damaged.unlink()


if __name__ == "__main__":
    cases.main()
