"""Turns GNU ld's lazily bound procedure linkage table into one like mold's: its slots all lead to the
table's head, and the entries give their index in a register."""

import pathlib
import re
import struct
import subprocess


def sections(path):
    """{name: (address, offset, size)}"""
    listed = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.findall(r"\] (\S+) +\S+ +([0-9a-f]{8,}) ([0-9a-f]+) ([0-9a-f]+)", listed)
    return {name: tuple(int(word, 16) for word in words) for name, *words in found}


def rewrite(source, target):
    """Writes the program `source` to `target`, with such a table; returns the number of its slots."""
    data = bytearray(pathlib.Path(source).read_bytes())
    where = sections(source)
    address, offset, size = where[".plt"]
    table, table_offset, _ = where[".got.plt"]
    assert data[offset:offset + 2] == b"\xff\x35" and data[offset + 6:offset + 8] == b"\xff\x25"
    data[offset:offset + 14] = (b"\x41\x53\xff\x35" + struct.pack("<i", table + 8 - (address + 8)) +
                                b"\xff\x25" + struct.pack("<i", table + 16 - (address + 14)))
    count = size // 16 - 1
    for i in range(count):
        entry = offset + 16 * (i + 1)
        assert data[entry:entry + 2] == b"\xff\x25" and data[entry + 6] == 0x68
        slot = address + 16 * (i + 1) + 6 + struct.unpack_from("<i", data, entry + 2)[0]
        index = struct.unpack_from("<I", data, entry + 7)[0]
        jump = slot - (address + 16 * (i + 1) + 12)
        data[entry:entry + 16] = (b"\x41\xbb" + struct.pack("<I", index) + b"\xff\x25" +
                                  struct.pack("<i", jump) + b"\xcc" * 4)
        struct.pack_into("<Q", data, table_offset + slot - table, address)
    target = pathlib.Path(target)
    target.unlink(missing_ok=True)  # maybe a link to `source`
    target.write_bytes(data)
    target.chmod(0o755)
    return count
