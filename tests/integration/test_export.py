"""export: programs or libraries of others read each format, and its sums are the report's; files appear whole or
not at all; bad input."""

import collections
import csv
import fcntl
import gzip
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import termios
import unittest

import cases
import support
from command import ARCTRACE, arctrace, read, read_report, run, start_arctrace
from states import wait_until
from tracing import TracedTest

SCHEMAS = pathlib.Path(__file__).resolve().parent / "export"
FORMATS = ("perfetto", "chrome", "speedscope", "folded", "pprof", "callgrind", "csv", "ndjson",
           "sqlite", "html")
STATUS_ERROR = 2
STATUS_INTERRUPTED = 130

HOSTILE = 'a"b\\c;<script>\x1b[2J\u202e\n\t operator()'

# Nested calls in threads and a forked process, with counters and instants; names that do harm; a call that does
# not end.
PROGRAM = support.API + f"""
hostile = {HOSTILE!r}
""" + """
outer, inner, leaf, endless = [key(text) for text in ("outer", "inner x", hostile, "endless")]
queue, moment = name("queue"), name("moment")
def spin(turns):
    for _ in range(turns): pass
def work(turns):
    for turn in range(turns):
        api.arctrace_enter(outer)
        for i in range(3):
            api.arctrace_enter(inner)
            api.arctrace_enter(leaf)
            spin(turn)
            api.arctrace_exit(leaf)
            api.arctrace_exit(inner)
        api.arctrace_counter(queue, ctypes.c_int64(turn))
        if turn % 10 == 0: api.arctrace_instant(moment)
        api.arctrace_exit(outer)
def named(text, turns):
    api.arctrace_thread_name(text.encode())
    work(turns)
threads = [threading.Thread(target=named, args=(f"worker{i}", 40 * i)) for i in (1, 2, 3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if os.fork() == 0:
    work(20)
    os._exit(0)
os.wait()
api.arctrace_enter(endless)
work(10)
"""
TURNS = 40 + 80 + 120 + 20 + 10


def export(trace, output, *options):
    traces = trace if isinstance(trace, (list, tuple)) else [trace]
    return arctrace("export", "-o", output, *options, *traces, text=False)


def protoc(schema, message, data):
    """A message as protoc decodes it: {field: [values]}, numbers and enumerations as texts."""
    done = subprocess.run(
        ["protoc", f"--proto_path={SCHEMAS}", f"--decode={message}", schema],
        input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    stack = [collections.defaultdict(list)]
    for line in done.stdout.decode().splitlines():
        line = line.strip()
        if line.endswith("{"):
            stack.append(collections.defaultdict(list))
        elif line == "}":
            message = stack.pop()
            stack[-1][names.pop()].append(message)
            continue
        else:
            field, value = line.split(": ", 1)
            if field.isdigit():
                raise AssertionError(f"{schema} has no such field: {line}")
            stack[-1][field].append(unquoted(value) if value.startswith('"') else value)
            continue
        names = names if len(stack) > 2 else []
        names.append(line[:-2])
    return stack[0]


def unquoted(text):
    """A string as protoc writes it: octal escapes of bytes."""
    plain = re.sub(
        rb'\\([0-7]{3}|.)',
        lambda found: (bytes([int(found[1], 8)]) if len(found[1]) == 3 else
                       {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(found[1], found[1])),
        text[1:-1].encode())
    return plain.decode()


def waiting_bytes(pipe):
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def size_of_open_file(pid, directory):
    """The size of the file without a name in a directory that a process has open; None if it has none."""
    try:
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(link).startswith(f"{directory}/#"):
                return link.stat().st_size
    except OSError:
        pass
    return None


class Sums:
    """Calls and self time of each function, from calls that begin and end."""

    def __init__(self):
        self.calls = collections.Counter()
        self.own_ns = collections.Counter()
        self.stacks = collections.defaultdict(list)  # by lane: [name, start, time of callees]

    def begin(self, lane, name, time_ns):
        self.stacks[lane].append([name, time_ns, 0])

    def end(self, lane, time_ns):
        name, start_ns, callees_ns = self.stacks[lane].pop()
        duration_ns = time_ns - start_ns
        self.calls[name] += 1
        self.own_ns[name] += duration_ns - callees_ns
        if self.stacks[lane]:
            self.stacks[lane][-1][2] += duration_ns

    def open(self):
        return [name for stack in self.stacks.values() for name, _, _ in stack]

    def values(self):
        return {name: (calls, self.own_ns[name]) for name, calls in self.calls.items()}


class ExportTest(TracedTest):
    def record_program(self):
        recorded = self.record(sys.executable, "-c", PROGRAM, options=("--no-libcall",))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        return recorded.trace

    def export(self, trace, form, *options):
        output = self.directory / f"out.{form}"
        done = export(trace, output, f"--to={form}", "--force", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, b"")
        return output.read_bytes()

    def sums_of_report(self, trace, *options):
        """{function: (calls, base_ns)}, without the call that does not end, and without the phases of a process,
        which are no calls."""
        sums = {}
        for row in read_report(trace, "flat", *options)["functions"]:
            if row["name"].startswith("["):
                continue
            calls, base_ns = sums.get(row["name"], (0, 0))
            sums[row["name"]] = calls + row["calls"], base_ns + row["base_ns"]
        del sums["endless"]
        return {self.safe(name): values for name, values in sums.items()}

    @staticmethod
    def safe(name):
        """A name as exports have it."""
        return "".join({"\n": "\\n", "\t": "\\t", "\\": "\\\\"}.get(
            c, f"\\x{ord(c):02x}" if c < " " else f"\\u{{{ord(c):x}}}" if c == "\u202e" else c)
            for c in name)

    def check_calls(self, sums):
        self.assertEqual(sums.calls, {"outer": TURNS, "inner x": 3 * TURNS,
                                      self.safe(HOSTILE): 3 * TURNS})

    @cases.in_gate
    def test_perfetto_by_protoc(self):
        trace = self.record_program()
        data = self.export(trace, "perfetto")
        sums, tracks, counters, moments = Sums(), {}, 0, 0
        sequences = {}
        for packet in protoc("perfetto.proto", "Trace", data)["packet"]:
            number = packet["trusted_packet_sequence_id"][0]
            if "1" in packet["sequence_flags"]:
                defaults = packet["trace_packet_defaults"][0]
                clocks = {c["clock_id"][0]: c for c in packet["clock_snapshot"][0]["clocks"]}
                self.assertEqual(defaults["timestamp_clock_id"], ["64"])
                self.assertEqual(clocks["64"]["is_incremental"], ["true"])
                sequences[number] = {
                    "track": defaults["track_event_defaults"][0]["track_uuid"][0],
                    "now": int(clocks["64"]["timestamp"][0]), "names": {}}
            for track in packet["track_descriptor"]:
                self.assertTrue(all(parent in tracks for parent in track["parent_uuid"]))
                self.assertNotIn(track["uuid"][0], tracks)
                tracks[track["uuid"][0]] = track
            if not packet["track_event"]:
                continue
            sequence, event = sequences[number], packet["track_event"][0]
            for data in packet["interned_data"]:
                for entry in data["event_names"]:
                    sequence["names"][entry["iid"][0]] = entry["name"][0]
            sequence["now"] += int(packet["timestamp"][0])
            lane = event["track_uuid"][0] if event["track_uuid"] else sequence["track"]
            self.assertIn(lane, tracks)
            if tracks[lane]["name"] == ["gaps"]:
                continue  # recording ends
            kind = event["type"][0]
            if kind == "TYPE_SLICE_BEGIN":
                sums.begin(lane, sequence["names"][event["name_iid"][0]], sequence["now"])
            elif kind == "TYPE_SLICE_END":
                sums.end(lane, sequence["now"])
            elif kind == "TYPE_COUNTER":
                self.assertEqual(tracks[lane]["name"], ["queue"])
                counters += 1
            elif event["name"] == ["moment"]:
                moments += 1
        self.assertEqual(sums.values(), self.sums_of_report(trace))
        self.check_calls(sums)
        self.assertEqual(sums.open(), ["endless"])
        self.assertEqual(counters, TURNS)
        self.assertEqual(moments, 4 + 8 + 12 + 2 + 1)
        threads = {t["thread"][0]["thread_name"][0] for t in tracks.values() if t["thread"]}
        self.assertLessEqual({"worker1", "worker2", "worker3"}, threads)
        self.assertEqual(sum(1 for t in tracks.values() if t["process"]), 2)

    @cases.in_gate
    def test_chrome(self):
        trace = self.record_program()
        data = self.export(trace, "chrome")
        sums, begun, lanes = Sums(), collections.defaultdict(list), collections.defaultdict(list)
        events = json.loads(data)["traceEvents"]
        gap_lanes = {event["tid"] for event in events if event["name"] == "thread_name"
                     and event["args"]["name"].endswith("gaps")}
        timed = [event for event in events if "ts" in event and event["tid"] not in gap_lanes]
        for event in sorted(timed, key=lambda event: event["ts"]):
            lane = event["pid"], event["tid"]
            time_ns = round(event["ts"] * 1000)
            if event["ph"] == "X":
                lanes[lane].append((time_ns, -round(event["dur"] * 1000), event["name"]))
            elif event["ph"] == "B":
                begun[lane].append((time_ns, event["name"]))
            elif event["ph"] == "E":
                start, name = begun[lane].pop()
                self.assertEqual(name, event["name"])
                lanes[lane].append((start, start - time_ns, name))
        open_calls = [name for calls in begun.values() for _, name in calls]
        for lane, calls in lanes.items():
            ends = []
            for start, minus_duration, name in sorted(calls):
                while ends and ends[-1] <= start:
                    sums.end(lane, ends.pop())
                sums.begin(lane, name, start)
                ends.append(start - minus_duration)
            while ends:
                sums.end(lane, ends.pop())
        self.assertEqual(sums.values(), self.sums_of_report(trace))
        self.assertEqual(open_calls, ["endless"])
        # Both views have one object for each record, with the names in full.
        flow = read("report", trace, "--view=flow", "--format=json")
        plain = sum(len(line) for line in flow.encode().split(b"},"))
        self.assertLess(2 * len(data), plain)

    @cases.in_gate
    def test_speedscope(self):
        trace = self.record_program()
        data = json.loads(self.export(trace, "speedscope"))
        names = [frame["name"] for frame in data["shared"]["frames"]]
        sums = Sums()
        for number, profile in enumerate(data["profiles"]):
            now = profile["startValue"]
            for event in profile["events"]:
                self.assertLessEqual(now, event["at"])
                now = event["at"]
                name = names[event["frame"]]
                if event["type"] == "O":
                    sums.begin(number, name, now)
                else:
                    self.assertEqual(sums.stacks[number][-1][0], name)
                    sums.end(number, now)
            self.assertLessEqual(now, profile["endValue"])
        values = sums.values()
        self.assertEqual(values.pop("endless")[0], 1)
        self.assertEqual(values, self.sums_of_report(trace))

    @cases.in_gate
    def test_folded(self):
        trace = self.record_program()
        own_ns, calls = collections.Counter(), collections.Counter()
        for weight, sums in (("wall", own_ns), ("count", calls)):
            text = self.export(trace, "folded", f"--weight={weight}").decode()
            for line in text.splitlines():
                # By the rule of flame-graph scripts: the number is the last word.
                stack, number = re.fullmatch(r"(.*) ([0-9]+)", line).groups()
                frames = stack.split(";")
                if len(frames) > 1:
                    sums[frames[-1]] += int(number)
            for name in [n for n in sums if n == "endless" or n.startswith("[")]:
                del sums[name]
            self.assertNotRegex(stack.split(";")[0], r" [0-9]+/[0-9]+$")
        expected = {name.replace(";", ":"): values
                    for name, values in self.sums_of_report(trace).items()}
        self.assertEqual({name: (calls[name], own_ns[name]) for name in calls}, expected)

    @cases.in_gate
    def test_pprof_by_protoc(self):
        trace = self.record_program()
        profile = protoc("profile.proto", "Profile",
                         gzip.decompress(self.export(trace, "pprof")))
        texts = profile["string_table"]
        self.assertEqual(texts[0], "")
        types = [texts[int(t["type"][0])] for t in profile["sample_type"]]
        self.assertEqual(types, ["calls", "wall"])
        functions = {f["id"][0]: texts[int(f["name"][0])] for f in profile["function"]}
        locations = {l["id"][0]: functions[l["line"][0]["function_id"][0]]
                     for l in profile["location"]}
        sums = collections.defaultdict(lambda: [0, 0])
        for sample in profile["sample"]:
            stack = [locations[id] for id in sample["location_id"]]
            for i, value in enumerate(sample["value"]):
                sums[stack[0]][i] += int(value)
            keys = {texts[int(label["key"][0])] for label in sample["label"]}
            self.assertEqual(keys, {"pid", "tid", "thread"})
        found = {name: tuple(values) for name, values in sums.items() if values[0]}
        found = {name: values for name, values in found.items()
                 if name != "endless" and not name.startswith("[")}
        self.assertEqual(found, self.sums_of_report(trace))

    @cases.in_gate
    @unittest.skipUnless(shutil.which("callgrind_annotate"), "callgrind_annotate is missing")
    def test_callgrind_by_callgrind_annotate(self):
        trace = self.record_program()
        output = self.directory / "callgrind.out"
        self.assertEqual(export(trace, output, "--to=callgrind").returncode, 0)
        done = subprocess.run(["callgrind_annotate", "--threshold=100", output],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=True)
        self.assertEqual(done.stderr, "")
        own_ns = {}
        for line in done.stdout.splitlines():
            found = re.match(r" *([0-9,]+) \([ 0-9.]+%\)  (?:\?\?\?:)?(.*?)(?: \[.*\])?$", line)
            if found:
                own_ns[found[2]] = int(found[1].replace(",", ""))
        expected = {name: base_ns for name, (_, base_ns) in self.sums_of_report(trace).items()}
        for name, base_ns in expected.items():
            self.assertEqual(own_ns[name], base_ns, done.stdout)
        threads = read_report(trace, "tree")["threads"]
        total = sum(thread["root"]["cum_ns"] for thread in threads)
        self.assertEqual(own_ns["PROGRAM TOTALS"], total)

    @cases.in_gate
    def test_csv_and_ndjson(self):
        trace = self.record_program()
        rows = list(csv.DictReader(io.StringIO(self.export(trace, "csv").decode())))
        objects = [json.loads(line) for line in self.export(trace, "ndjson").splitlines()]
        self.assertEqual(len(rows), len(objects))
        expected = self.sums_of_report(trace)
        endless_ns, = (row["base_ns"] for row in read_report(trace, "flat")["functions"]
                       if row["name"] == "endless")
        for table in (rows, objects):
            sums = collections.defaultdict(lambda: [0, 0])
            for row in table:
                if row["type"] == "call" and row["duration_ns"] not in ("", None):
                    sums[row["name"]][0] += 1
                    sums[row["name"]][1] += int(row["self_ns"])
            # A call that did not end has no duration, but its time is the report's too.
            endless, = (row for row in table if row["name"] == "endless")
            self.assertEqual((endless["duration_ns"] or None, int(endless["self_ns"])),
                             (None, endless_ns))
            self.assertEqual({name: tuple(values) for name, values in sums.items()}, expected)
            kinds = collections.Counter(row["type"] for row in table)
            self.assertEqual(kinds["counter"], TURNS)

    def test_filters_are_those_of_the_report(self):
        trace = self.record_program()
        whole = read_report(trace, "tree")["summary"]["duration_ns"]
        for options in ([], ["-F", "inner*"], ["-D", "1"], ["-N", "inner*"], ["-t", "20us"],
                        ["-r", f"{whole // 3}ns~{whole // 2}ns"], ["--process", "nothing*"]):
            with self.subTest(options=options):
                expected = collections.defaultdict(lambda: [0, 0])
                for row in read_report(trace, "flat", *options)["functions"]:
                    sums = expected[self.safe(row["name"]).replace(";", ":")]
                    sums[0] += row["calls"]
                    sums[1] += row["base_ns"]
                found = collections.defaultdict(lambda: [0, 0])
                for i, weight in enumerate(("count", "wall")):
                    text = self.export(trace, "folded", "--per=all", f"--weight={weight}",
                                       *options).decode()
                    for line in text.splitlines():
                        stack, number = line.rsplit(" ", 1)
                        found[stack.split(";")[-1]][i] += int(number)
                found.pop("all", None)  # the time outside of calls
                self.assertEqual(
                    dict(found), {n: sums for n, sums in expected.items() if sums != [0, 0]})
                rows = [json.loads(line) for line in
                        self.export(trace, "ndjson", *options).splitlines()]
                calls = collections.Counter(row["name"].replace(";", ":") for row in rows
                                            if row["type"] == "call")
                self.assertEqual(calls, {n: sums[0] for n, sums in expected.items()
                                         if sums[0] and not n.startswith("[")})

    # ---- Files ------------------------------------------------------------------------------

    def refused(self, trace, output, *options):
        """The one line with which an export that is refused ends."""
        before = sorted(self.directory.iterdir())
        done = export(trace, output, *options)
        self.assertEqual(done.returncode, STATUS_ERROR, done.stderr)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertEqual(sorted(self.directory.iterdir()), before)
        return lines[0]

    @cases.in_gate
    def test_bad_input(self):
        trace = self.record_program()
        output = self.directory / "out"
        self.assertIn('"perfetto"', self.refused(trace, output, "--to=perfeto"))
        self.assertIn("perfetto, chrome", self.refused(trace, output, "--to=zzz"))
        self.assertIn("--weight", self.refused(trace, output, "--to=csv", "--weight=cpu"))
        self.assertIn("--kernel", self.refused(trace, output, "--to=folded", "--weight=cpu"))
        self.assertIn("is the trace itself",
                      self.refused(trace, trace, "--to=folded", "--force"))
        self.assertIn("none/out", self.refused(trace, self.directory / "none/out", "--to=csv"))
        self.assertIn("No such file", self.refused(self.directory / "no", output, "--to=csv"))
        cut = self.directory / "cut"
        cut.write_bytes(trace.read_bytes()[:-5000])
        self.assertIn("--partial", self.refused(cut, output, "--to=chrome"))
        done = export(cut, output, "--to=chrome", "--partial")
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads(output.read_bytes())
        cut.unlink()
        self.assertIn("--force", self.refused(trace, output, "--to=chrome"))
        other = self.directory / "other"
        shutil.copy(trace, other)
        self.assertIn("same part", self.refused([trace, other], self.directory / "two",
                                                "--to=chrome"))
        read("record", "-o", other, "--", "true")
        self.assertIn("not of one recording",
                      self.refused([trace, other], self.directory / "two", "--to=chrome"))

    @cases.in_gate
    def test_without_output(self):
        """The file is beside the trace, has the format's suffix, and replaces none."""
        trace = self.record_program()
        place = self.directory / "place"
        place.mkdir()
        trace.rename(place / "one.data")
        names = {"perfetto": "one.pftrace", "chrome": "one.json", "html": "one.html", "speedscope": "one.speedscope.json",
                 "folded": "one.folded", "pprof": "one.pb.gz", "callgrind": "one.callgrind", "csv": "one.csv",
                 "ndjson": "one.ndjson", "sqlite": "one.db"}
        self.assertEqual(set(names), set(FORMATS))
        for form, name in names.items():
            with self.subTest(form=form):
                done = arctrace("export", f"--to={form}", place / "one.data", cwd=self.directory)
                self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
                self.assertRegex(done.stderr, rf"none lost: {re.escape(str(place / name))} \(")
                content = (place / name).read_bytes()
                self.assertGreater(len(content), 0)
                again = arctrace("export", f"--to={form}", place / "one.data", cwd=self.directory)
                self.assertEqual((again.returncode, again.stdout), (2, ""))
                self.assertEqual(again.stderr, f"arctrace: {place / name} exists: --force replaces it, -o names another "
                                               "file\n")
                self.assertEqual((place / name).read_bytes(), content)
                done = arctrace("export", f"--to={form}", "--force", "one.data", cwd=place)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f": {name} (", done.stderr)
        self.assertEqual({path.name for path in place.iterdir()}, {"one.data", *names.values()})

    def test_a_session(self):
        name = f"test-export-{os.getpid()}"
        read("create", name, "-b", "1M", "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)
        output = self.directory / "out"
        self.assertIn("snapshot", self.refused(name, output, "--to=ndjson"))
        done = export(name, output, "--to=ndjson", "--partial")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_standard_output(self):
        trace = self.record_program()
        for form in FORMATS:
            with self.subTest(form=form):
                done = export(trace, "-", f"--to={form}")
                self.assertEqual(done.returncode, 0)
                self.assertEqual(done.stderr, b"")
                self.assertEqual(done.stdout, self.export(trace, form))

    def test_standard_output_with_findings_and_losses(self):
        trace = self.record_program()
        cut = self.directory / "cut"
        cut.write_bytes(trace.read_bytes()[:-5000])
        done = export(cut, "-", "--to=csv", "--partial")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"arctrace check", done.stderr)
        cut.unlink()
        # A record that fits no block is lost.
        program = support.API + """
big = api.arctrace_define_event(b"big", 0, None, ctypes.c_size_t(0))
api.arctrace_write(big, b"x" * 40000, ctypes.c_size_t(40000))
"""
        recorded = self.record(sys.executable, "-c", program,
                               options=("--no-libcall", "--block-size=8K"))
        lost = read_report(recorded.trace, "flat")["summary"]["lost"]
        self.assertEqual(lost, 1)
        done = export(recorded.trace, "-", "--to=csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"1 record of the trace", done.stderr)

    def test_a_full_disk_leaves_nothing(self):
        trace = self.record_program()
        for form in FORMATS:
            # The limit leaves space for a block of 1,024 bytes.
            if len(self.export(trace, form)) <= 1024:
                continue
            before = sorted(self.directory.iterdir())
            with self.subTest(form=form):
                export_limited = f"trap '' XFSZ; ulimit -f 1; exec {ARCTRACE} export --to={form} -o out {trace}"
                done = run("bash", "-c", export_limited, cwd=self.directory)
                self.assertEqual(done.returncode, STATUS_ERROR, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertEqual(sorted(self.directory.iterdir()), before)

    def interrupted(self, process, status):
        """Sends Ctrl-C; the process must end as one that noticed."""
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        output, errors = process.communicate()
        self.assertEqual(process.returncode, status, errors)
        if status == STATUS_INTERRUPTED:
            self.assertRegex(errors, b"^arctrace: interrupted: [^\\n]*\\n$")
        return output

    def test_ctrl_c_into_a_pipe(self):
        """ndjson is written while the trace is read, folded stacks when it has been read."""
        program = PROGRAM + """
for i in range(8000):
    unique = key(f"{i}" + "x" * 60)
    api.arctrace_enter(unique)
    spin(20)
    api.arctrace_exit(unique)
"""
        recorded = self.record(sys.executable, "-c", program, options=("--no-libcall",))
        for form in ("ndjson", "folded"):
            with self.subTest(form=form):
                whole = self.export(recorded.trace, form)
                with start_arctrace("export", f"--to={form}", "-o", "-", recorded.trace, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE) as process:
                    size = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
                    self.assertLess(4 * size, len(whole))
                    # When it waits for space in the pipe, the export is in the middle.
                    wait_until(lambda: waiting_bytes(process.stdout) >= size // 2 and state_of(process.pid) == "S",
                               "the export waits for room in the pipe")
                    output = self.interrupted(process, STATUS_INTERRUPTED)
                self.assertLess(len(output), len(whole))
                self.assertEqual(output, whole[:len(output)])

    def test_ctrl_c_leaves_nothing(self):
        recorded = self.record(sys.executable, "-c", PROGRAM + "work(4000)",
                               options=("--no-libcall",))
        whole = len(self.export(recorded.trace, "ndjson"))
        before = sorted(self.directory.iterdir())
        output = self.directory / "out"
        for _ in range(20):
            # The low priority keeps the export from running far while we wait for a CPU on a busy machine.
            with subprocess.Popen(["nice", "-n", "19", ARCTRACE, "export", "--to=ndjson", "-o", output,
                                   recorded.trace], stderr=subprocess.PIPE) as process:
                # The file exists, as yet without a name.
                while (size_of_open_file(process.pid, self.directory) is None
                       and process.poll() is None):
                    pass
                process.send_signal(signal.SIGSTOP)
                while process.poll() is None and state_of(process.pid) != "T":
                    pass
                # The signal must come before the last check for one, when the file is whole or nearly so.
                size = size_of_open_file(process.pid, self.directory)
                if size is None or size > whole // 2:
                    process.send_signal(signal.SIGCONT)
                    process.communicate()
                    output.unlink()
                    continue
                self.interrupted(process, STATUS_INTERRUPTED)
            self.assertEqual(sorted(self.directory.iterdir()), before)
            return
        self.fail("each export was too fast")

    def test_files_of_a_ring(self):
        recorded = self.record(sys.executable, "-c", PROGRAM + "for _ in range(20): work(100)",
                               options=("--no-libcall", "-b", "16M", "--block-size=8k", "--size-limit=8M",
                                        "--snapshots=40"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        files = sorted(recorded.trace.parent.glob(recorded.trace.name + "*"))
        self.assertGreater(len(files), 2)
        objects = [json.loads(line) for line in self.export(files, "ndjson").splitlines()]
        calls = collections.Counter(row["name"] for row in objects if row["type"] == "call")
        turns = TURNS + 20 * 100
        self.assertEqual(calls, {"outer": turns, "inner x": 3 * turns,
                                 self.safe(HOSTILE): 3 * turns, "endless": 1})
        # Definitions that each file repeats are no finding.
        done = export(files, self.directory / "folded", "--to=folded")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(b"warning", done.stderr)
        gaps = {row["name"] for row in objects if row["type"] == "gap"}
        self.assertLessEqual(gaps, {"recording off"})  # recording goes off at the end
        self.assertEqual({flag for row in objects for flag in row.get("flags", [])}, {"open"})
        # All files but one in the middle are exported.
        middle = files[len(files) // 2]
        content = middle.read_bytes()
        middle.write_bytes(content[:-5000])
        self.assertIn("--partial", self.refused(files, self.directory / "cut", "--to=csv"))
        done = export(files, self.directory / "cut", "--to=csv", "--partial")
        middle.write_bytes(content)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    cases.main()
