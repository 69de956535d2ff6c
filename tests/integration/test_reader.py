"""libarctrace-reader reads what the command reads: facts, records, calls and sums of the same traces."""

import collections
import csv
import json
import os
import pathlib
import subprocess

import cases
from command import read, read_dump, read_info, read_report
from tracing import TracedTest

READ_ALL = os.environ["ARCTRACE_READ_ALL"]


def read_all(*arguments):
    """{first field: [the other fields of each line]} of what read_all prints."""
    done = subprocess.run([READ_ALL, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    lines = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        kind, *fields = line.split("\t")
        lines[kind].append(fields)
    return lines


class Reader(TracedTest):
    """A shell and its children, with arguments and return values."""

    def setUp(self):
        super().setUp()
        self.trace = self.record("sh", "-c", "ls / >/dev/null; cat /proc/self/comm", options=["-a"]).trace

    def test_facts(self):
        lines = read_all("facts", self.trace)
        info = read_info(self.trace)
        sums = info["summary"]
        self.assertEqual(lines["facts"], [[str(sums["records"]), str(sums["lost"]), str(sums["findings"]),
                                           str(sums["duration_ns"]), info["session"]["host"], "1"]])
        self.assertEqual(lines["process"], [[str(p["pid"]), p["executable"], str(len(p["arguments"])),
                                             str(p["start_ns"])] for p in info["processes"]])
        self.assertEqual([fields[:2] for fields in lines["thread"]],
                         [[str(t["pid"]), str(t["tid"])] for t in info["threads"]])

    def test_sums(self):
        lines = read_all("sums", self.trace)
        flat = read_report(self.trace, "flat", "--per=process")
        self.assertEqual(
            [[f["name"], f["module"] or ""] + [str(f[key]) for key in (
                "calls", "base_ns", "cum_ns", "avg_ns", "min_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns")]
             for process in flat["processes"] for f in process["functions"]],
            [fields for fields in lines["function"]])
        self.assertGreater(len(lines["function"]), 20)
        nodes = []

        def walk(node, level):
            nodes.append([str(level), node["name"], str(node["calls"]), str(node["base_ns"]), str(node["cum_ns"])])
            for child in node["children"]:
                walk(child, level + 1)

        for process in read_report(self.trace, "tree", "--per=process")["processes"]:
            walk(process["root"], 0)
        self.assertEqual(lines["node"], nodes)

    def exported(self):
        path = self.directory / "calls.csv"
        read("export", "--to=csv", "-o", path, self.trace)
        with path.open(encoding="utf-8", newline="") as file:
            return [row for row in csv.DictReader(file) if row["type"] in ("call", "frame")]

    def test_calls(self):
        wanted = [[row["tid"], row["start_ns"], row["depth"], row["name"], row["module"], row["args"], row["retval"]]
                  for row in self.exported()]
        lines = read_all("calls", self.trace)["call"]
        self.assertEqual([[tid, start, depth, name, module, args, retval]
                          for tid, start, _, _, depth, name, module, args, retval, _, _, _ in lines], wanted)
        self.assertTrue(any(args for *_, args, _ in wanted))
        # A path has the functions around a call, and ends with that call's.
        for _, _, _, _, depth, _, _, _, _, path, caller, flags in lines:
            if not int(flags) & (8 | 16):
                self.assertEqual(path, depth)
                self.assertEqual(caller == "", depth == "1")

    def test_times_of_calls(self):
        ended = [(row["start_ns"], int(row["duration_ns"]), int(row["self_ns"]))
                 for row in self.exported() if row["duration_ns"]]
        found = [(start, int(end) - int(start), int(self_ns))
                for _, start, end, self_ns, *_, flags in read_all("calls", self.trace)["call"]
                if not int(flags) & (32 | 256)]
        self.assertEqual(found, ended)

    def test_records(self):
        records = [r for r in read_dump(self.trace) if r["type"] != "GAP"]
        # Some records have a field of this name as well.
        for record in records:
            record.pop("pid")
        found = []
        for time_ns, name, tid, fields in read_all("records", self.trace)["record"]:
            fields = json.loads(fields)
            fields.pop("pid", None)
            found.append({"time_ns": int(time_ns), "tid": int(tid) if tid else None, "type": name, **fields})
        self.assertEqual(found, records)

    def test_cut_file_is_read_up_to_there(self):
        cut = self.directory / "cut.data"
        whole = self.trace.read_bytes()
        cut.write_bytes(whole[:len(whole) // 2])  # names and an index come last
        lines = read_all("facts", cut)
        self.assertEqual(lines["facts"][0][-1], "0")
        self.assertGreater(int(lines["facts"][0][0]), 0)
        self.assertTrue(lines["finding"])
        self.assertTrue(read_all("calls", cut)["call"])
        cut.unlink()

    def test_ring_of_files_is_one_trace(self):
        self.trace.unlink()
        recorded = self.record("ls", "-R", "/usr/include", options=["--size-limit=8M", "-b", "256M"])
        files = sorted(pathlib.Path(self.directory).glob("arctrace.data*"))
        self.assertGreater(len(files), 1)
        sums = 0
        for file in files:
            sums += int(read_all("facts", file)["facts"][0][0])
        self.assertEqual(int(read_all("facts", *files)["facts"][0][0]), sums)
        self.assertEqual(recorded.status, 0)

    def test_removed_files_are_counted(self):
        self.trace.unlink()
        self.record("ls", "-R", "/usr/include", options=["--size-limit=1M", "-b", "64M", "--block-size=8k"])
        files = sorted(pathlib.Path(self.directory).glob("arctrace.data*"))
        for part in (files, files[:1], files[1:]):
            info = read_info(*part)
            summary, seen = info["summary"], info["session"]["files"]
            self.assertGreater(summary["lost_by_cause"]["removed"], 0)
            facts = read_all("facts", *part)
            self.assertEqual(dict(facts["lost"])["removed"], str(summary["lost_by_cause"]["removed"]))
            self.assertEqual(facts["files"], [[str(seen["first"]), str(seen["last"]), str(seen["removed"]),
                                               str(int(seen["goes_on"])), str(summary["elsewhere"])]])

    def test_errors(self):
        for paths, words in ((["/nonexistent"], "cannot open"), ([__file__], "not"), ([self.trace] * 2, "the same part")):
            done = subprocess.run([READ_ALL, "facts", *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_damaged_files_do_no_harm(self):
        whole = self.trace.read_bytes()
        damaged = self.directory / "damaged.bin"
        for at in range(0, len(whole), len(whole) // 12):
            damaged.write_bytes(whole[:at] + bytes(64) + b"\xff" * 64 + whole[at + 128:])
            for what in ("facts", "calls", "records", "sums"):
                done = subprocess.run([READ_ALL, what, damaged], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      check=False)
                self.assertIn(done.returncode, (0, 2), f"{what} with damage at {at}: {done.stderr}")
        damaged.unlink()


if __name__ == "__main__":
    cases.main()
