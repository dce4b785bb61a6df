"""The process's one clock: monotonic instants, kernel receive stamps, and the wall clock between them.

Knows no HTTP and no Locust. The kernel stamps what it receives in CLOCK_REALTIME; everything here is
counted in CLOCK_MONOTONIC. One offset per process joins the two: a pair of readings taken per request was
wrong by up to 12 ms under load, the tightest of five brackets by less than 0.1 µs. It is measured again
each second and whenever a stamp looks odd; a change of more than 1 ms is a step of the wall clock.
"""

from __future__ import annotations

import _socket
import os
import struct
from pathlib import Path
from time import monotonic_ns, time_ns

import gevent

SO_TIMESTAMPNS = 35
"""The socket option on Linux; Python has no name for it."""
STEP_NS = 1_000_000
ANCILLARY_BYTES = 64
CHECK_EVERY_S = 1.0
PROBE_NS = 50_000_000

unpack_stamp = struct.Struct("qq").unpack


def wall_offset_ns() -> int:
    """Measure CLOCK_REALTIME − CLOCK_MONOTONIC by the tightest of five brackets (about 2 µs)."""
    best_width = best_offset = -1
    for _ in range(5):
        before = monotonic_ns()
        wall = time_ns()
        after = monotonic_ns()
        if best_width < 0 or after - before < best_width:
            best_width = after - before
            best_offset = wall - (before + after) // 2
    return best_offset


def clock_identity() -> str:
    """Name the kernel's monotonic clock: processes that give the same name read the same one; "" where nobody can say.

    The clock starts with the kernel (its boot id) and may be shifted by a time namespace.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/time")
    except (OSError, UnicodeDecodeError):
        return ""
    return f"{boot} {namespace}"


class Clock:
    """Monotonic time, the offset to the wall clock, and whether the kernel stamps what arrives.

    ``source`` is "kernel" where a byte over loopback came back with a stamp, else "user". ``steps`` counts
    the steps of the wall clock seen so far. The guard socket keeps the kernel's stamping switched on:
    without one, the first segments of a connection carry no stamp (146 of 300), with it all do.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.offset_ns = wall_offset_ns()
        self.steps = 0
        self._guard = _guard_socket()
        self.source = "kernel" if self._guard is not None and _kernel_stamps() else "user"
        self._checker = gevent.spawn(self._check_each_second)

    @staticmethod
    def now_ns() -> int:
        """Return the monotonic instant."""
        return monotonic_ns()

    def epoch_ns(self, mono_ns: int) -> int:
        """Turn a monotonic instant into nanoseconds since the epoch."""
        return mono_ns + self.offset_ns

    def check(self) -> None:
        """Measure the offset again; a change of more than 1 ms counts as a step (about 2 µs)."""
        offset_ns = wall_offset_ns()
        if abs(offset_ns - self.offset_ns) > STEP_NS:
            self.steps += 1
        self.offset_ns = offset_ns

    def close(self) -> None:
        """End the checks and give the guard socket back."""
        self._checker.kill()
        if self._guard is not None:
            self._guard.close()

    def _check_each_second(self) -> None:
        while self.pid == os.getpid():  # a fork copies greenlets too; the copy ends itself
            gevent.sleep(CHECK_EVERY_S, ref=False)
            self.check()


_of_process: list[Clock] = []
os.register_at_fork(after_in_child=_of_process.clear)


def get_clock() -> Clock:
    """Return this process's clock; the first call makes it (at most 50 ms) and never yields to the hub."""
    if not _of_process:
        _of_process.append(Clock())
    return _of_process[0]


def _guard_socket() -> _socket.socket | None:
    try:
        guard = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        guard.setsockopt(_socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return None
    return guard


def _kernel_stamps() -> bool:
    """Send bytes over loopback until one carries a stamp that fits the wall clock, for at most 50 ms.

    The kernel switches stamping on some 3.5 ms after the first socket asks for it (Linux 5.x and 6.x).
    """
    if not hasattr(_socket.socket, "recvmsg"):
        return False
    try:
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        receiver = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    except OSError:
        return False
    try:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        receiver.setsockopt(_socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.settimeout(1.0)
        receiver.connect(listener.getsockname())
        sender = _socket.socket(fileno=listener._accept()[0])  # type: ignore[attr-defined]  # missing in typeshed
    except OSError:
        return False
    else:
        return _stamped_within(sender, receiver)
    finally:
        receiver.close()
        listener.close()


def _stamped_within(sender: _socket.socket, receiver: _socket.socket) -> bool:
    until_ns = monotonic_ns() + PROBE_NS
    try:
        while monotonic_ns() < until_ns:
            sent_ns = time_ns()
            sender.send(b"x")
            _, ancillary, _, _ = receiver.recvmsg(1, ANCILLARY_BYTES)
            if ancillary:
                seconds, nanos = unpack_stamp(ancillary[0][2])
                return bool(abs(seconds * 1_000_000_000 + nanos - sent_ns) < 1_000_000_000)
        return False
    except (OSError, struct.error):
        return False
    finally:
        sender.close()
