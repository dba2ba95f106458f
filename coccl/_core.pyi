from collections.abc import Callable

__version__: str
build: dict[str, object]

class CompressorInfo:
    @property
    def name(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def block(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def group(self) -> int: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def rotated(self) -> bool: ...
    @property
    def bits_per_element(self) -> float: ...

class AlgorithmInfo:
    @property
    def collective(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def story(self) -> str: ...
    def encodings(self, size: int, nodes: list[int] = []) -> int: ...

class LocalHub:
    def __init__(self, size: int, nodes: list[int] = [], timeout_s: float = 60.0) -> None: ...
    def close(self, reason: str) -> None: ...

class Communicator:
    @staticmethod
    def local(hub: LocalHub, rank: int, poison_scratch: bool = False) -> Communicator: ...
    @staticmethod
    def nccl(
        unique_id: bytes,
        rank: int,
        size: int,
        nodes: list[int] = [],
        timeout_s: float = 600.0,
        library: str = "",
        poison_scratch: bool = False,
    ) -> Communicator: ...
    @staticmethod
    def external(
        exchange: Callable[[list[tuple[int, int, int]], list[tuple[int, int, int]]], None],
        all_gather: Callable[[int, int, int], None] | None,
        rank: int,
        size: int,
        nodes: list[int] = [],
        poison_scratch: bool = False,
    ) -> Communicator: ...
    def all_reduce(
        self,
        input: int,
        output: int,
        count: int,
        type: int,
        op: int,
        stream: int | None,
        compressor: str,
        algorithm: str,
    ) -> None: ...
    def reduce_scatter(
        self,
        input: int,
        output: int,
        count: int,
        type: int,
        op: int,
        stream: int | None,
        compressor: str,
        algorithm: str,
    ) -> None: ...
    def all_gather(
        self,
        input: int,
        output: int,
        count: int,
        type: int,
        stream: int | None,
        compressor: str,
        algorithm: str,
    ) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def scratch_bytes(self) -> int: ...
    def close(self, reason: str) -> None: ...

def compressors() -> list[CompressorInfo]: ...
def algorithms() -> list[AlgorithmInfo]: ...
def select(collective: str, bytes: int, size: int, nodes: list[int]) -> str: ...
def run(
    compressor: str,
    *,
    type: int,
    count: int,
    chunks: int = 1,
    raw_stride: int = 0,
    coded: int = 0,
    coded_stride: int = 0,
    inputs: int = 0,
    raw_in: int = 0,
    coded_out: int = 0,
    raw_out: int = 0,
    scale: float = 1.0,
    stream: int | None = None,
) -> None: ...
def encode_emulated(
    compressor: str, raw_in: int, coded_out: int, count: int, type: int
) -> None: ...
def nccl_unique_id(library: str = "") -> bytes: ...
def nccl_version(library: str = "") -> tuple[int, str]: ...
