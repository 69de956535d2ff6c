"""A second reader of live buffers and of trace files, written from the text of SPEC.md alone.

It shares no code with the product. Names and bodies of records come from the table of record types in SPEC.md; its
section "Reading a live buffer, step by step" says how a live buffer is read, and the rules there (LIVE-1 ...) stand
beside the lines that implement them. The reader is as simple as the text permits: it has all records in lists, and
knows nothing of stacks and times.

Python has no acquire load. So this reader copies by LIVE-5 (b), which needs a machine that keeps loads in order and
stores in order: x86-64, and no other one (`IN_ORDER`).
"""

import ctypes
import dataclasses
import errno
import functools
import mmap
import os
import pathlib
import platform
import re
import struct

SPEC = (pathlib.Path(__file__).resolve().parents[2] / "SPEC.md").read_text(encoding="utf-8")
IN_ORDER = platform.machine() == "x86_64"
FILL = 0xFFFFFFFF
BLOCK_MAGIC = 0x4B4C4241
IN_PROGRESS = 1 << 31
OWNED, SHARED, CLOSED, DRAINING = 2, 3, 4, 5
COMPACT, FULL, BARE = 1, 2, 3
HEAD_SIZES = {COMPACT: 8, FULL: 16, BARE: 4}
DATA, DEFINITIONS = 1, 2
CLASSES = (DATA, DEFINITIONS)
# type -> (name, its body in the words of the table)
TYPES = {int(number): (name, body)
         for number, name, body in re.findall(r"^\| (\d+) \| ([A-Z_]+) \| (.+?) \|", SPEC, re.MULTILINE)}
PAD, TIME = (next(number for number, (name, _) in TYPES.items() if name == wanted) for wanted in ("PAD", "TIME"))
KINDS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "s32": "i", "s64": "q", "char": "s"}


class NotValid(Exception):
    """A rule of SPEC.md is broken; the text begins with its name."""


@dataclasses.dataclass(frozen=True)
class Record:
    type: int
    ticks: int
    writer: int
    body: bytes

    @property
    def name(self):
        return TYPES[self.type][0] if self.type in TYPES else str(self.type)

    def fields(self):
        """The fields that the table gives the body, by name; NotValid: the body is too short for them (R3)."""
        try:
            return decode(TYPES[self.type][1], self.body, 0)[0]
        except struct.error as error:
            raise NotValid(f"R3: {self}: {error}") from error


@functools.cache
def parts_of(text):
    """The parts of a body that the table describes so: (name, kind, what the kind refers to)."""
    parts, kind = [], ""
    for part in re.split(r", (?![^()]*(?:\([^()]*\)[^()]*)*\))", text):
        if part in ("none", "anything", "payload"):
            parts.append((part, "rest", None))
        elif repeated := re.fullmatch(r"(\w+) \* \((.+)\)", part):
            parts.append((repeated[1], "list", repeated[2]))
        elif sized := re.fullmatch(r"bytes\((\w+)\) ?(\w*)", part):
            parts.append((sized[2] or "bytes", "bytes", sized[1]))
        else:
            given, name, count = re.fullmatch(r"(?:(\w+) )?(\w+)(?:\[(\d+)\])?", part).groups()
            kind = KINDS[given] if given else kind
            parts.append((name, "array" if count and kind != "s" else "value", struct.Struct(f"<{count or 1}{kind}")))
    return parts


def decode(text, body, at):
    """(fields, where they end) of a body that the table describes so. Anything after them belongs to a later version
    (REC-4)."""
    fields = {}
    for name, what, of_it in parts_of(text):
        if what == "rest":
            fields[name], at = body[at:], len(body)
        elif what == "list":
            fields["list"] = []
            for _ in range(fields[name]):
                entry, at = decode(of_it, body, at)
                fields["list"].append(entry)
        elif what == "bytes":
            fields[name], = struct.unpack_from(f"{fields[of_it]}s", body, at)
            at += fields[of_it] + -fields[of_it] % 4
        else:
            values = of_it.unpack_from(body, at)
            fields[name] = values if what == "array" else values[0]
            at += of_it.size
    return fields, at


# ---- Blocks ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Block:
    """A copy of a block, or of the collector's records (form FULL, class and handout None)."""

    handout: int | None
    form: int
    block_class: int | None
    writer: int = 0
    base_ticks: int = 0
    records: list = dataclasses.field(default_factory=list)
    in_progress: int = 0  # torn, if the writers are dead


def heads(words, form, first):
    """(offset in words, word 0) of all records that are begun, by the words that were copied first (READ-1)."""
    smallest = HEAD_SIZES[form]
    at = first
    while at < len(words):
        word0 = words[at]
        if word0 == FILL:
            if form != FULL:
                return  # an exclusive block has no holes, so this is the end
            at += 1
            continue
        length = word0 & 0xFFFF
        if length < smallest or length % 4 or length // 4 > len(words) - at or not word0 >> 16 & 0x7FFF:
            raise NotValid(f"R1, R2: word 0 {word0:#x} at {4 * at}")
        yield at, word0
        at += length // 4


def add_records(block, found, content):
    """Decodes the records of `found` (heads()), whose bodies are in the bytes `content`."""
    base = block.base_ticks
    for at, word0 in found:
        if word0 & IN_PROGRESS:
            block.in_progress += 1
            continue
        begin, end, kind = 4 * at, 4 * at + (word0 & 0xFFFF), word0 >> 16
        body = content[begin + HEAD_SIZES[block.form]:end]
        if block.form == FULL:
            writer, ticks = struct.unpack_from("<IQ", content, begin + 4)
            record = Record(kind, ticks, writer, body)
        else:
            delta = 0 if block.form == BARE else struct.unpack_from("<I", content, begin + 4)[0]
            record = Record(kind, base + delta, block.writer, body)
        if kind == TIME:
            base = record.fields()["ticks"]  # its own ticks say nothing (REC-2)
        elif kind != PAD:
            block.records.append(record)


def header_of(content):
    """An empty Block with the values of the 128 bytes of a block's header (section 2)."""
    magic, form, block_class, writer = struct.unpack_from("<IHHI", content, 64)
    if magic != BLOCK_MAGIC or form not in HEAD_SIZES or block_class not in CLASSES:
        raise NotValid(f"B2: magic {magic:#x}, form {form}, class {block_class}")
    handout, base_ticks = struct.unpack_from("<QQ", content, 96)
    return Block(handout, form, block_class, writer, base_ticks)


def add_longer(blocks, others):
    """Adds blocks, by handout. If there are two copies of a block, the longer one counts."""
    for other in others:
        block = blocks.get(other.handout)
        if block is None or len(other.records) > len(block.records):
            blocks[other.handout] = other


# ---- A live buffer ---------------------------------------------------------------------------------------------


def open_map(path):
    """A descriptor of the BPF map that is pinned at `path`, and the size of its value (LIVE-1)."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]

    def bpf(command, attributes):
        done = call(number, command, attributes, len(attributes))
        if done < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        return done

    name = ctypes.create_string_buffer(os.fsencode(path))
    descriptor = bpf(7, struct.pack("=QII", ctypes.addressof(name), 0, 0))  # BPF_OBJ_GET
    info = ctypes.create_string_buffer(80)
    bpf(15, struct.pack("=IIQ", descriptor, len(info), ctypes.addressof(info)))  # BPF_OBJ_GET_INFO_BY_FD
    _, _, _, value_size = struct.unpack_from("=4I", info)
    return descriptor, value_size


@dataclasses.dataclass(frozen=True)
class Slot:
    """A writer slot's facts about its owner (LIVE-9)."""

    live: bool
    writer: int
    written: int
    lost: tuple  # by cause
    reported: tuple


@dataclasses.dataclass
class Reading:
    """What one reading of a buffer has found."""

    blocks: dict  # by handout
    slots: list
    session_lost: tuple
    cpu_lost: int  # by the kernel's writer, and in no LOST record yet


class Buffer:
    """A session's buffer, mapped for reading."""

    def __init__(self, path):
        """`path`: of the file, or the pinned map. NotValid: it is no buffer that this version reads."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            size = os.fstat(descriptor).st_size
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            descriptor, size = open_map(path)
        try:
            self.memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ)
        finally:
            os.close(descriptor)
        # Loads of whole words, each in one access.
        self.words = memoryview(self.memory).cast("I")
        self.longs = memoryview(self.memory).cast("Q")
        self.read_geometry(size)
        self.whole = {}  # copies that can't change any more, by handout

    def read_geometry(self, size):
        """LIVE-2."""
        header = self.memory[:168]
        magic, order, major, _, required = struct.unpack_from("<QIHHQ", header)
        if magic != 0x4543415254435241 or order != 0x01020304 or major != 1 or required != 0:
            raise NotValid("BUF-4: not a buffer that can be read")
        sizes = struct.unpack_from("<8I3Q", header, 32)
        (_, _, self.slot_count, _, self.cpu_count, _, self.block_size, self.block_count) = sizes[:8]
        self.slots_offset = 8192 + self.cpu_count * 128
        self.blocks_offset = (self.slots_offset + self.slot_count * 256 + 4095) // 4096 * 4096
        total = (self.blocks_offset + self.block_count * self.block_size + 4095) // 4096 * 4096
        if (sizes[:2] != (4096, 256) or sizes[3] != 128 or sizes[5] != 128
                or sizes[8:] != (self.slots_offset, self.blocks_offset, total) or total > size):
            raise NotValid(f"BUF-1: {sizes} in {size} bytes")
        self.ticks_per_second, self.start_ticks = struct.unpack_from("<QQ", header, 112)

    def time_ns(self, ticks):
        """Time since the session's start, by its header alone (LIVE-8)."""
        return (ticks - self.start_ticks) * 10**9 / self.ticks_per_second

    def read_slots(self):
        """LIVE-9: the slots that have had an owner."""
        slots = []
        for index in range(min(self.words[(4096 + 328) // 4], self.slot_count)):
            at = self.slots_offset + 256 * index
            lock = self.words[at // 4]
            longs = [self.longs[at // 8 + i] for i in range(13, 32)]
            slots.append(Slot(is_live(lock), self.words[at // 4 + 10], longs[0] + longs[1] - longs[2],
                              tuple(longs[3:11]), tuple(longs[11:])))
        return slots

    def named(self):
        """The indices of the blocks that a live writer, or a CPU, names in active[] or held[] (BLK-4)."""
        words, names = self.words, set()
        for index in range(min(words[(4096 + 328) // 4], self.slot_count)):
            at = (self.slots_offset + 256 * index) // 4
            if is_live(words[at]):
                names.update(words[at + 17:at + 25])
        for cpu in range(self.cpu_count):
            names.update(words[(8192 + 128 * cpu + 72) // 4:][:4])
        return {name - 1 for name in names}

    def read(self, file=None):
        """A Reading of what the buffer contains now, and of `file`, that of a collector that drains it."""
        slots = self.read_slots()  # read before the blocks, so that all of a dead writer's records are there
        # LIVE-4: definitions come before the data that need them, so definitions are copied last; and first, too,
        # because they may be overwritten when the data are.
        blocks = self.copy_blocks(DEFINITIONS)
        blocks.update(self.copy_blocks(DATA))
        if file is not None:
            file.update()
        blocks.update(self.copy_blocks(DEFINITIONS))
        if file is not None:
            file.update(only_definitions=True)
            add_longer(blocks, file.blocks.values())
        session_lost = tuple(self.longs[(4096 + 384) // 8 + i] for i in range(8))
        counts = [self.longs[(8192 + 128 * cpu + 88) // 8:][:2] for cpu in range(self.cpu_count)]
        return Reading(blocks, slots, session_lost, sum(lost - reported for lost, reported in counts))

    def copy_blocks(self, wanted):
        """Copies of the blocks of a class, by handout; the oldest is copied first."""
        before = self.longs[(4096 + 64) // 8]  # LIVE-3: blocks handed out from now on are for the next reading
        listed = []
        for index in range(self.block_count):
            at = self.blocks_offset + index * self.block_size
            phase = self.longs[at // 8] & 0xFF
            if phase not in (OWNED, SHARED, CLOSED, DRAINING) or self.words[at // 4 + 16] != BLOCK_MAGIC:
                continue
            handout = self.longs[at // 8 + 12]
            if self.words[at // 4 + 17] >> 16 == wanted and handout < before:
                listed.append((handout, index, phase))
        names = self.named()  # read after the phases
        # All blocks are copied before one is decoded, which takes longer.
        copies = {handout: self.copy_block(index) for handout, index, _ in sorted(listed) if handout not in self.whole}
        blocks = {}
        for handout, index, phase in listed:
            block = self.whole.get(handout) or self.decode_block(copies[handout])
            if block is None or block.handout != handout:
                continue
            if phase == CLOSED and index not in names:
                self.whole[handout] = block  # LIVE-3
            blocks[handout] = block
        return blocks

    def copy_block(self, index):
        """copy_content() of a block, or None if the block was reused meanwhile."""
        at = self.blocks_offset + index * self.block_size
        words = self.words[at // 4:(at + self.block_size) // 4]
        identity = words[16], words[24], words[25]  # magic, handout
        copy = self.copy_content(words, at)
        # LIVE-6: a writer that wipes the block clears its magic first.
        is_whole = identity[0] == BLOCK_MAGIC and (words[16], words[24], words[25]) == identity
        return copy if is_whole else None

    def decode_block(self, copy):
        """The Block that the copy has; None if the copy is None."""
        if copy is None:
            return None
        words, content = copy
        block = header_of(content)
        try:
            add_records(block, heads(words, block.form, 32), content)
        except NotValid as error:
            raise NotValid(f"{error}, in the block of handout {block.handout}") from error
        return block

    def copy_content(self, words, at):
        """LIVE-5 (b): (words in which heads are found, bytes with the bodies). The words are loaded one by one,
        downwards; so where a word of a record is seen, its word 0 was loaded later, and is seen too. The bodies are
        loaded after all words, so the body of a record whose word 0 was whole is whole."""
        downwards = words[::-1].tolist()
        return downwards[::-1], self.memory[at:at + self.block_size]


def is_live(lock):
    return lock != 0 and not lock & 1 << 30


# ---- A trace file ----------------------------------------------------------------------------------------------


def crc32c(content):
    """FILE-5."""
    value = FILL
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 * (value & 1)
    return value ^ FILL


class File:
    """A trace file, which may still grow: `blocks`, by handout, and the collector's `records`."""

    def __init__(self, path, checks=False):
        """`checks`: whether checksums are verified."""
        self.path, self.checks, self.offset = path, checks, 4096
        self.blocks, self.records = {}, []
        self.update()

    def update(self, only_definitions=False):
        """Reads the chunks that have come; with `only_definitions` only their definitions, and all of them again the
        next time. NotValid: a chunk breaks a rule."""
        offset = self.offset
        with open(self.path, "rb") as file:
            if file.read(8) != b"ARCTFILE":
                raise NotValid("FILE-1: not a trace file")
            while True:
                file.seek(offset)
                head = file.read(32)
                if len(head) < 32 or head[:4] != b"CHNK":
                    return  # the next chunk is not there yet
                _, kind, _, size, _, _, checksum, _ = struct.unpack("<IHHIIIIQ", head)
                payload = file.read(size)
                if len(payload) < size:
                    return
                if self.checks and crc32c(head[:20] + bytes(4) + head[24:] + payload) != checksum:
                    raise NotValid(f"F9: the chunk at {offset}")
                offset += 32 + size
                if not only_definitions:
                    self.offset = offset
                elif kind != 1 or header_of(payload).block_class != DEFINITIONS:
                    continue
                self.add_chunk(kind, payload)

    def add_chunk(self, kind, payload):
        if kind not in (1, 2):
            return  # this chunk has no records
        block = header_of(payload) if kind == 1 else Block(None, FULL, None)
        words = memoryview(payload).cast("I").tolist()
        add_records(block, heads(words, block.form, 32 if kind == 1 else 0), payload)
        if kind == 2:
            self.records += block.records
            return
        add_longer(self.blocks, [block])
