"""What the kernel answers, unparsed, for the file of readings."""

import os

from mpsbar.system.macos import processes
from mpsbar.system.macos.raw import read_raw


def test_values_as_bytes_and_sizes_beside_what_we_expect(mac):
    mac.set_sysctl("hw.memsize", (36 << 30).to_bytes(8, "little"))
    mac.add_process(os.getpid())
    mac.add_region(os.getpid(), 0x1_0000_0000, 4096, "/usr/lib/dyld")
    raw = read_raw(mac.libraries)
    assert raw["sysctl"]["hw.memsize"] == (36 << 30).to_bytes(8, "little").hex()
    assert raw["sysctl"]["iogpu.wired_limit_mb"].startswith("errno ")
    assert raw["sizes"]["bsdinfo"] == {"expected": 136, "kernel": 136}
    assert raw["sizes"]["taskinfo"] == {"expected": 96, "kernel": 96}
    assert raw["sizes"]["region"] == {"expected": processes.REGION.size, "kernel": 1272}
