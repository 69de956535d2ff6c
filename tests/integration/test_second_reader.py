"""Tests a second reader, which knows SPEC.md's text only (second_reader.py), against the product: it decodes the worked
example and the vectors of SPEC.md, and reads live buffers while known_events writes what the test knows beforehand: in
each scope, beside a collector, in overwrite mode, in the kernel's map, and where records are lost.
In each reading no record is bad, none occurs twice, and none is missing that was written before it and has not been
removed. At the end both readers find the same.
"""

import collections
import ctypes
import itertools
import mmap
import os
import pathlib
import re
import signal
import struct
import subprocess
import unittest

import cases
import second_reader
from command import arctrace, read, read_dump, start_arctrace
from kernel_programs import NO_KERNEL
from second_reader import DATA, DEFINITIONS, Block, Buffer, File, NotValid, add_records, heads
from states import command_of, wait_until
from tracing import TracedTest

KNOWN_EVENTS = os.environ["ARCTRACE_KNOWN_EVENTS"]
LIBC = ctypes.CDLL(None)
THREADS = 4
EACH = 50  # events with one layout, as in known_events.c
READINGS = 40 if cases.IS_GATE else 120
ROOM = "10M" if cases.IS_GATE else "30M"  # space for all that is written during so many readings
COPIES = 12  # of an open block in one reading: each is a chance that a writer comes between
STEP = 100  # at most so many events of each thread from one reading to the next
USER_TYPES = range(5, 32)
KERNEL_TYPES = range(64, 128)
FRAME_NAME = 1 << 63


def payload_of(thread, number):
    """The payload of an event of known_events.c."""
    size = (number * 7 + thread) % 40
    product = (number + 1) * (thread + 1) * 0x9E3779B97F4A7C15 % (1 << 64)
    payload = struct.pack("<IIQI", thread, number, product, size) + bytes([ord("a") + number % 26]) * size
    return payload + bytes(-len(payload) % 4)


class Writers:
    """A running known_events, which writes as many events as it is permitted."""

    def __init__(self, test, start):
        """`start` starts the command that it is given and returns it as a Popen."""
        path = test.directory / f"control-{len(list(test.directory.iterdir()))}"
        path.write_bytes(bytes(4096))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)
        self.words, self.longs = memoryview(self.memory).cast("I"), memoryview(self.memory).cast("Q")
        self.process = start([KNOWN_EVENTS, str(path), str(THREADS)])
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        test.addCleanup(self.set_limit, second_reader.FILL)  # the recorder's end does not end the program

    def let_write(self, more):
        self.set_limit(self.words[0] + more)

    def set_limit(self, limit):
        self.words[0] = limit
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        LIBC.syscall(202, ctypes.c_void_p(address), 1, THREADS, None, None, 0)  # futex, FUTEX_WAKE

    def begin(self):
        """Lets the threads write, and returns when one does; or soon, as they may have to wait for a CPU."""
        self.let_write(STEP)
        before = self.written()
        for _ in range(2000):
            if self.written() != before:
                return

    def written(self):
        """How many events each thread has written."""
        return self.longs[8:8 + THREADS].tolist()

    def wait(self):
        """Waits until the threads have written all that they may."""
        limit = self.words[0]
        wait_until(lambda: all(count == limit for count in self.written()) or self.process.poll() is not None,
                   self.written)
        if self.process.poll() is not None:
            raise AssertionError(f"known_events ended with {self.process.returncode}")

    def end(self):
        self.wait()
        self.set_limit(second_reader.FILL)
        if self.process.wait() != 0:
            raise AssertionError(f"status {self.process.returncode}")


class Racing(Buffer):
    """A Buffer that copies each open block several times, while its writers write. All copies must be valid."""

    def __init__(self, path, writers):
        super().__init__(path)
        self.writers, self.others = writers, []

    def copy_block(self, index):
        at = self.blocks_offset + index * self.block_size
        phase, kind = self.longs[at // 8] & 0xFF, self.words[at // 4 + 17]
        if phase == second_reader.CLOSED:
            return super().copy_block(index)
        if kind == second_reader.FULL | DATA << 16:
            self.writers.begin()
        copies = [super(Racing, self).copy_block(index) for _ in range(COPIES)]
        self.others += copies[:-1]
        return copies[-1]

    def read(self, file=None):
        reading = super().read(file)
        while self.others:
            self.decode_block(self.others.pop())
        return reading


class Account:
    """The events in copies of blocks, and what is wrong with them."""

    def __init__(self):
        self.layouts, self.names, self.processes = {}, set(), {}
        self.ticks = {}  # of each event
        self.blocks = {}  # handout -> (the Block, its events)
        self.bad = []

    def events(self, blocks):
        """The events in these blocks, as a list of thread << 32 | number."""
        for wanted in (DEFINITIONS, DATA):
            for block in blocks.values():
                if block.block_class == wanted and self.blocks.get(block.handout, (None,))[0] is not block:
                    self.blocks[block.handout] = block, list(self.events_of(block))
        return list(itertools.chain.from_iterable(self.blocks[handout][1] for handout in blocks))

    def events_of(self, block):
        for record in block.records:
            try:
                event = self.event_of(block, record)
            except (NotValid, KeyError) as error:
                self.bad.append(f"{record} in block {block.handout}: {error!r}")
                continue
            if event is not None:
                yield event

    def event_of(self, block, record):
        """thread << 32 | number of an EVENT, None for another record. KeyError, NotValid: something is wrong with
        it."""
        fields = record.fields()
        if block.block_class == DEFINITIONS:
            if record.type not in range(32, 48):
                raise NotValid("R6: its class")
            if record.name == "EVENT_LAYOUT":
                self.layouts[fields["process"], fields["id"]] = fields
            elif record.name == "STRING":
                self.names.add((fields["process"], fields["id"]))
            elif record.name == "THREAD":
                self.processes[fields["writer"]] = fields["process"]
        elif record.type in KERNEL_TYPES:
            if not record.writer >> 31:
                raise NotValid("REC-3: a kernel record's writer")
        else:
            return self.user_event_of(record, fields)
        return None

    def user_event_of(self, record, fields):
        process = self.processes[record.writer]  # R7
        if record.name == "EVENT":
            layout = self.layouts[process, fields["event"]]  # D4
            thread, number = struct.unpack_from("<II", fields["payload"])
            if fields["payload"] != payload_of(thread, number):
                raise NotValid("the payload")
            if layout["name"] != b"event %d of %d" % (number // EACH, thread) \
                    or [field["type"] for field in layout["list"]] != [3, 3, 4, 13]:
                raise NotValid(f"the layout: {layout}")
            self.ticks[thread << 32 | number] = record.ticks
            return thread << 32 | number
        keys = [entry["key"] for entry in fields.get("list", [])] + ([fields["key"]] if "key" in fields else [])
        for key in keys:
            if key & FRAME_NAME and not key & 1 << 62 and (process, key & 0xFFFFFFFF) not in self.names:
                raise NotValid("D4: a frame's name")
        if record.name not in ("ENTER", "EXIT", "STACK", "LOST"):
            raise NotValid("a record that known_events does not write")
        return None


class Faults:
    """Faults of readings: how many records were bad, occurred twice, or were missing."""

    def __init__(self):
        self.account = Account()
        self.bad_copies, self.doubled, self.missing = [], 0, 0
        self.readings = 0

    def add(self, blocks, written=None, gapless=False):
        """`written`: how many events of each thread must be there. `gapless`: no event is missing before a later one,
        either. Returns the events, as a set."""
        found = self.account.events(blocks)
        events = set(found)
        self.readings += 1
        self.doubled += len(found) - len(events)
        if written is not None:
            wanted = list(written)
            for event in events if gapless else ():
                wanted[event >> 32] = max(wanted[event >> 32], (event & 0xFFFFFFFF) + 1)
            self.missing += sum(wanted) - sum(event & 0xFFFFFFFF < wanted[event >> 32] for event in events)
        return events

    def assert_none(self, test):
        test.assertEqual(([], [], 0, 0), (self.bad_copies, self.account.bad, self.doubled, self.missing),
                         f"in {self.readings} readings")


def times_of_product(trace):
    """event -> time_ns, as the product reads them."""
    times = {}
    for record in read_dump(trace, "--type", "EVENT"):
        event = record["fields"]["thread"] << 32 | record["fields"]["number"]
        if event in times:
            raise AssertionError(f"there twice: {record}")
        times[event] = record["time_ns"]
    return times


class Text(TracedTest):
    """The examples in SPEC.md itself."""

    def test_the_worked_example(self):
        text, = re.findall(r"^```file\n(.*?)^```", second_reader.SPEC, re.MULTILINE | re.DOTALL)
        content, wanted = bytearray(), []
        for line in text.splitlines():
            words = line.split(";")[0].split()
            if words[0].startswith("@"):
                self.assertEqual(int(words[0][1:]), len(content))
                if words[1] == "record":
                    wanted.append((words[2], int(words[3]), int(words[4])))
            else:
                content += bytes(int(words[1])) if words[0] == "zero" else bytes.fromhex("".join(words))
        (self.directory / "example").write_bytes(content)
        file = File(self.directory / "example", checks=True)
        self.assertEqual(file.offset, len(content))
        records = [record for block in file.blocks.values() for record in block.records] + file.records
        self.assertEqual(collections.Counter((record.name, record.ticks, record.writer) for record in records),
                         collections.Counter(wanted))
        fields = {record.name: record.fields() for record in records}
        self.assertEqual(fields["STRING"]["text"], b"greet")
        self.assertEqual(fields["ENTER"]["key"], FRAME_NAME | fields["STRING"]["id"])
        layout, event = fields["EVENT_LAYOUT"], fields["EVENT"]
        self.assertEqual((layout["name"], layout["list"]), (b"said", [{"type": 3, "name_size": 5, "bytes": b"words"}]))
        self.assertEqual((event["event"], event["payload"]), (layout["id"], struct.pack("<I", 2)))
        self.assertEqual(fields["TOTALS"]["written"], 3)

    def test_the_vectors(self):
        vectors = re.findall(r"^```vector (\S+)\n(.*?)^```", second_reader.SPEC, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(vectors), 6)
        for name, text in vectors:
            lines = text.splitlines()
            content = bytes.fromhex("".join(line for line in lines if not line.startswith("->")))
            wanted = [line[3:] for line in lines if line.startswith("->")]
            form = {"compact": second_reader.COMPACT, "bare": second_reader.BARE}.get(
                name.split("-")[0], second_reader.FULL)
            block = Block(0, form, DATA, 7, 1000)
            begun, found = [], []
            try:
                for head in heads(memoryview(content).cast("I").tolist(), form, 0):
                    begun.append(head)
            except NotValid as error:
                found.append(f"breach {str(error)[:2]}")
            add_records(block, begun, content)
            found += ["torn"] * block.in_progress
            found += [" ".join([record.name, str(record.ticks), str(record.writer), *(f"{b:02x}" for b in record.body)])
                      for record in block.records]
            self.assertEqual(sorted(found), sorted(wanted), name)


NO_ORDER = "" if second_reader.IN_ORDER else ("a reader without acquire loads needs a machine that keeps loads "
                                              "in order")


@unittest.skipIf(NO_ORDER, NO_ORDER)
class LiveTest(TracedTest):
    CHECKS_VIEWS = False
    numbers = itertools.count()  # of sessions
    session = None

    def create(self, *options):
        """The path of a new session's buffer."""
        self.session = f"second-{os.getpid()}-{next(self.numbers)}"
        done = arctrace("create", self.session, "--start", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(arctrace, "destroy", "--force", self.session)
        return done.stdout.strip()

    def writers(self, path):
        """Starts known_events in the session."""
        return Writers(self, lambda command: subprocess.Popen(command, env={**os.environ, "ARCTRACE_SESSION": path}))

    def read_while(self, writers, reading, faults, keeps_all=True, gapless=False, times=READINGS):
        """Calls `reading`, which returns blocks, again and again while the writers write. `keeps_all`: all events that
        were written before must be there. Returns, for each time, how many these were, and which are there."""
        writers.let_write(1)
        writers.wait()
        readings = []
        for _ in range(times):
            writers.let_write(STEP)
            written = writers.written()
            try:
                blocks = reading()
            except NotValid as error:
                faults.bad_copies.append(str(error))
                continue
            readings.append((written, faults.add(blocks, written if keeps_all else None, gapless)))
        writers.wait()
        return readings

    def assert_seen_while_written(self, readings):
        """Checks that readings were made at different times of the writing."""
        self.assertGreater(len({len(events) for _, events in readings}), READINGS // 10)

    def assert_file(self, file, faults, writers, trace):
        """Checks that at the end all is in the file, which the product reads alike."""
        file.update()
        events = faults.add(file.blocks, writers.written(), gapless=True)
        faults.assert_none(self)
        self.assertEqual(events, set(times_of_product(trace)))


class Live(LiveTest):
    """The buffer is a file."""

    def test_without_a_collector(self):
        """All that was written before is there, in each scope, and at the end both readers find the same."""
        for scope in ("thread", "shared", "adaptive"):
            with self.subTest(scope):
                self.read_without_a_collector(scope)

    def read_without_a_collector(self, scope):
        path = self.create("-b", ROOM, "--block-size", "8k", f"--scope={scope}")
        writers, faults = self.writers(path), Faults()
        buffer = Racing(path, writers)
        readings = self.read_while(writers, lambda: buffer.read().blocks, faults, gapless=True)
        self.assert_seen_while_written(readings)
        last = Buffer(path).read()  # nobody writes any more
        events = faults.add(last.blocks, writers.written(), gapless=True)
        faults.assert_none(self)
        self.assertEqual(sum(slot.live for slot in last.slots if slot.written > 0), THREADS)
        self.assertLessEqual({slot.writer for slot in last.slots}, set(faults.account.processes))
        self.assertEqual((last.session_lost, last.cpu_lost), ((0,) * 8, 0))
        self.assertEqual(sum(slot.written for slot in last.slots), 3 * len(events))
        times = times_of_product(self.session)
        self.assertEqual(events, set(times))
        self.assertLess(max(abs(buffer.time_ns(faults.account.ticks[event]) - times[event]) for event in events), 2)
        writers.end()
        self.assertEqual([slot.live for slot in buffer.read_slots()], [False] * len(last.slots))
        read("destroy", self.session)

    def test_beside_a_collector(self):
        """Records that the buffer no longer has are in the file, which is read after it."""
        for scope in cases.shortened(("shared", "thread", "adaptive")):
            with self.subTest(scope):
                self.read_beside_a_collector(scope)

    def read_beside_a_collector(self, scope):
        path = self.create("-b", ROOM, "--block-size", "8k", f"--scope={scope}", "--high-water=1")
        trace = self.directory / f"{scope}.data"
        collector = start_arctrace("attach", self.session, "-o", trace, stderr=subprocess.DEVNULL)
        self.addCleanup(collector.kill)
        wait_until(trace.exists, "the collector's file")
        writers, faults = self.writers(path), Faults()
        buffer, file = Racing(path, writers), File(trace)
        self.assert_seen_while_written(self.read_while(writers, lambda: buffer.read(file).blocks, faults))
        writers.end()
        collector.send_signal(signal.SIGINT)
        collector.wait()
        self.assert_file(file, faults, writers, trace)
        read("destroy", self.session)

    def test_overwrite(self):
        """A block that is overwritten during a reading is missing, and no other one."""
        for scope in cases.shortened(("adaptive", "thread", "shared")):
            with self.subTest(scope):
                self.read_what_is_overwritten(scope)

    def read_what_is_overwritten(self, scope):
        path = self.create("-b", "512k" if cases.IS_GATE else "1M", "--block-size", "4k", f"--scope={scope}",
                           "--mode=overwrite")
        writers, faults = self.writers(path), Faults()
        buffer = Racing(path, writers)
        readings = self.read_while(writers, lambda: buffer.read().blocks, faults, keeps_all=False)
        last = faults.add(Buffer(path).read().blocks)  # nobody writes any more
        for written, events in readings:
            # Records that are there now were there all the time.
            faults.missing += sum(event & 0xFFFFFFFF < written[event >> 32] for event in last - events)
        faults.assert_none(self)
        self.assertLess(len(last), sum(writers.written()) // 2, "nothing was overwritten")
        self.assertEqual(last, set(times_of_product(self.session)))
        writers.end()
        read("destroy", self.session)

    def test_losses(self):
        """Losses are counted: in LOST records, or while these do not count them yet, in the slots."""
        path = self.create("-b", "512k", "--block-size", "8k", "--scope=adaptive")
        writers, faults = self.writers(path), Faults()
        buffer = Racing(path, writers)
        self.read_while(writers, lambda: buffer.read().blocks, faults, keeps_all=False)
        last = Buffer(path).read()  # nobody writes any more
        events = faults.add(last.blocks)
        faults.assert_none(self)
        records = [record for block in last.blocks.values() for record in block.records]
        present = sum(record.type in USER_TYPES for record in records)
        self.assertLess(len(events), sum(writers.written()))
        self.assertEqual(sum(slot.written for slot in last.slots), present)
        self.assertEqual(sum(sum(slot.lost) for slot in last.slots) + present, 3 * sum(writers.written()))
        self.assertEqual(sum(record.fields()["count"] for record in records if record.name == "LOST"),
                         sum(sum(slot.reported) for slot in last.slots))
        writers.end()


@unittest.skipIf(NO_KERNEL or NO_ORDER, NO_KERNEL or NO_ORDER)
class Map(LiveTest):
    """The buffer is the value of a BPF map, and the kernel writes to it too."""

    def test_the_map(self):
        trace = self.directory / "kernel.data"
        writers = Writers(self, lambda command: start_arctrace(
            "record", "-o", trace, "--kernel=bpf", "--no-libcall", "-b", "32M", "--block-size=8k", "--high-water=1",
            "--", *command, stderr=subprocess.DEVNULL))
        wait_until(lambda: "ARCTRACE_SESSION" in environment_of(writers), "the program")
        path = environment_of(writers)["ARCTRACE_SESSION"]
        self.assertTrue(path.startswith("/run/arctrace/"), path)
        wait_until(trace.exists, "the recorder's file")
        buffer, file, faults = Racing(path, writers), File(trace), Faults()
        read_before, kernel = {}, set()

        def reading():
            blocks = buffer.read(file).blocks
            kernel.update(kernel_records(block for handout, block in blocks.items()
                                         if read_before.get(handout) is not block))
            read_before.update(blocks)
            return blocks

        # The kernel writes many records, so the short form is long enough.
        self.assert_seen_while_written(self.read_while(writers, reading, faults, times=40))
        writers.end()
        self.assert_file(file, faults, writers, trace)
        # Records that were read while the kernel wrote are in the file.
        wanted = kernel_records(file.blocks.values())
        self.assertGreater(len(kernel), READINGS)
        self.assertEqual(kernel - set(wanted), set())
        product = collections.Counter(record["type"] for record in read_dump(trace))
        self.assertEqual(collections.Counter(record.name for record in wanted),
                         collections.Counter({name: product[name] for name in {record.name for record in wanted}}))


def environment_of(writers):
    """The environment of the command that a recorder runs; empty as long as there is none."""
    try:
        command = command_of(writers.process.pid)
        text = pathlib.Path(f"/proc/{command}/environ").read_bytes().decode(errors="replace")
    except (ValueError, OSError):  # no command yet, or a thread of the recorder has just ended
        return {}
    return dict(line.partition("=")[::2] for line in text.split("\0"))


def kernel_records(blocks):
    return [record for block in blocks for record in block.records if record.type in KERNEL_TYPES]


if __name__ == "__main__":
    cases.main()
