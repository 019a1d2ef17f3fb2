"""A plain model of the allocator of torch's MPS, to hold the real one against."""

from dataclasses import dataclass, field

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
OTHER_METAL = 3 * MiB


class OutOfMemoryError(Exception):
    """Neither cached nor new memory could be had below the limit."""


@dataclass(eq=False)
class Buffer:
    offset: int
    size: int
    number: int
    used: bool = True
    last_use: int = 0


@dataclass(eq=False)
class Heap:
    size: int
    buffers: list[Buffer] = field(default_factory=list)

    def gaps(self) -> list[tuple[int, int]]:
        """(offset, length) of each hole between the buffers, in order."""
        found, at = [], 0
        for b in [*sorted(self.buffers, key=lambda b: b.offset), Buffer(self.size, 0, 0)]:
            if b.offset > at:
                found.append((at, b.offset - at))
            at = b.offset + b.size
        return found

    def largest(self) -> int:
        return max((length for _, length in self.gaps()), default=0)


class Model:
    """Two pools of heaps; a buffer that is freed stays in its heap until it is dropped."""

    def __init__(self, memory: int) -> None:
        self.high, self.low = int(1.7 * memory), int(1.4 * memory)
        self.small: list[Heap] = []
        self.large: list[Heap] = []
        self.peaks = [0, 0]
        self.count = 0

    def sizes(self) -> list[int]:
        """Allocated and reserved bytes."""
        heaps = self.small + self.large
        used = [b.size for heap in heaps for b in heap.buffers if b.used]
        return [sum(used), sum(heap.size for heap in heaps)]

    def driver(self) -> int:
        return self.sizes()[1] + OTHER_METAL

    def note_peaks(self) -> None:
        self.peaks = [max(pair) for pair in zip(self.peaks, self.sizes(), strict=True)]

    def allocate(self, asked: int) -> Buffer:
        grain = 256 if asked <= 16 * KiB else 16 * KiB
        size = -(-asked // grain) * grain
        pool = self.small if size <= MiB else self.large
        pressure = pool is self.large and self.driver() >= self.low
        found, made_room = self.reuse(pool, size)
        pressure = pressure and not made_room
        if not found and pressure:
            self.collect(pool)
        found = found or self.carve(pool, size, pressure)
        if not found and self.drop_enough(pool, size):
            found = self.carve(pool, size, pressure)
        if not found:
            self.empty()
            found = self.carve(pool, size, pressure)
        if not found:
            raise OutOfMemoryError
        self.count += 1
        found.used, found.last_use = True, self.count
        self.note_peaks()
        return found

    def empty(self) -> None:
        for pool in (self.small, self.large):
            for buffer in idle(pool):
                self.drop(pool, buffer)

    def fits(self, size: int) -> bool:
        return self.driver() + size <= self.high

    def reuse(self, pool: list[Heap], size: int) -> tuple[Buffer | None, bool]:
        """The best cached buffer; one that is far too big makes room for a smaller one instead."""
        found = next((b for b in idle(pool) if b.size >= size), None)
        if not found or not self.fits(size):
            return None, False
        if found.size <= size + 32 * MiB:
            return found, False
        if best_heap(pool, size):
            return None, False
        home(pool, found).buffers.remove(found)
        return None, True

    def carve(self, pool: list[Heap], size: int, pressure: bool) -> Buffer | None:
        if not self.fits(size):
            return None
        heap = best_heap(pool, size)
        if not heap:
            heap = Heap(heap_size(size, pressure))
            pool.append(heap)
            self.note_peaks()
        offset = next(at for at, length in heap.gaps() if length >= size)
        self.count += 1
        heap.buffers.append(Buffer(offset, size, self.count))
        return heap.buffers[-1]

    def drop(self, pool: list[Heap], buffer: Buffer) -> None:
        heap = home(pool, buffer)
        heap.buffers.remove(buffer)
        if not heap.buffers:
            pool.remove(heap)

    def drop_enough(self, pool: list[Heap], size: int) -> bool:
        cached = idle(pool)
        if big := [b for b in cached if b.size >= size]:
            self.drop(pool, big[0])
            return True
        freed = 0
        while freed < size and cached:
            freed += cached[-1].size
            self.drop(pool, cached.pop())
        return freed >= size

    def collect(self, pool: list[Heap]) -> None:
        for buffer in sorted(idle(pool), key=lambda b: b.last_use):
            if self.driver() < self.low:
                return
            self.drop(pool, buffer)


def idle(pool: list[Heap]) -> list[Buffer]:
    """Cached buffers, the smallest first; among equals the one made first."""
    return sorted(
        (b for heap in pool for b in heap.buffers if not b.used), key=lambda b: (b.size, b.number)
    )


def home(pool: list[Heap], buffer: Buffer) -> Heap:
    return next(heap for heap in pool if buffer in heap.buffers)


def best_heap(pool: list[Heap], size: int) -> Heap | None:
    return min((h for h in pool if h.largest() >= size), key=Heap.largest, default=None)


def heap_size(size: int, pressure: bool) -> int:
    """8 MiB, 32 MiB or 1 GiB; a very large buffer, or one under pressure, gets its own."""
    if size <= MiB:
        return 8 * MiB
    if size < 10 * MiB:
        return 32 * MiB
    if size < 512 * MiB and not pressure:
        return GiB
    return -(-size // (2 * MiB)) * 2 * MiB
