"""A small file of each version of the format is read whole by today's reader. Each was written by the last tree of its version;
tools/release adds that of the current version to tests/integration/formats."""

import pathlib

import cases
from command import arctrace, read, read_dump, read_info, read_report
from tracing import TracedTest

FORMATS = pathlib.Path(__file__).resolve().parent / "formats"


class Formats(TracedTest):
    def test_each_is_read(self):
        files = sorted(FORMATS.glob("*.trace"))
        self.assertTrue(files)
        for file in files:
            with self.subTest(file.name):
                read("check", file)
                session = read_info(file)["session"]
                self.assertEqual(session["version"], file.stem)
                types = {record["type"] for record in read_dump(file)}
                self.assertLessEqual({"PROCESS", "THREAD", "MODULE", "STRING", "ENTER", "EXIT", "ARGUMENTS", "RESULT"}, types)
                self.assertTrue(read_report(file, "flat")["functions"])

    def test_a_damaged_one_is_noticed(self):
        """The check of test_each_is_read can fail."""
        bytes_of_file = bytearray(sorted(FORMATS.glob("*.trace"))[-1].read_bytes())
        bytes_of_file[-200:-100] = bytes(100)
        damaged = self.directory / "damaged"
        damaged.write_bytes(bytes_of_file)
        done = arctrace("check", damaged)
        self.assertEqual(done.returncode, 1)
        damaged.unlink()


if __name__ == "__main__":
    cases.main()
