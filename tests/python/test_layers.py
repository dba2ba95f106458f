"""The layer rule: an include points down only, and foreign names stay where they belong.

Read from the sources alone, so it runs before anything is built.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

CUDA = {"cuda_runtime.h", "cuda_runtime_api.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h"}
NCCL = {"nccl.h"}
SYSTEM = {"dlfcn.h", "link.h", "unistd.h"}

LIBRARY = {
    "communicator",
    "algorithms",
    "symmetric",
    "codec",
    "transport",
    "base",
    "coccl",
}


class Layer(NamedTuple):
    """What the files of a folder may include beside the standard library."""

    folders: Set[str]
    foreign: Set[str] = frozenset()
    names_cuda: bool = True


# By folder of src/; "coccl" is include/coccl, "python" the binding.
LAYERS = {
    "coccl": Layer({"coccl"}),
    "base": Layer({"base", "coccl"}, CUDA | NCCL | SYSTEM),
    "codec": Layer({"codec", "base", "coccl"}, CUDA),
    "codecs": Layer({"codec"}, names_cuda=False),
    "transport": Layer({"transport", "base", "coccl"}, CUDA | NCCL),
    "algorithms": Layer({"algorithms", "codec", "transport", "base", "coccl"}, names_cuda=False),
    "symmetric": Layer({"symmetric", "codec", "base", "coccl"}, CUDA | NCCL),
    "communicator": Layer(LIBRARY),
    "python": Layer({"python", *LIBRARY}, CUDA | NCCL),
}

STANDARD_HEADER = re.compile(r"[a-z_]+|std(bool|def|int)\.h")
BINDING_HEADER = re.compile(r"nanobind/.+")
CUDA_NAME = re.compile(
    r"\b(?:cuda[A-Z_]\w*|nccl[A-Z_]\w*|CUDA_\w+|NCCL_\w+|cu[A-Z]\w*|__(?:global|device|shared)__"
    r"|__shfl\w*|__syncthreads|__syncwarp|threadIdx|blockIdx|blockDim)\b|<<<"
)
ENVIRONMENT_NAME = re.compile(r"\b(?:secure_)?getenv\b")

# The files that read the environment: the node's name for the library, and the configuration and
# the launcher for the package.
CPP_ENVIRONMENT_READERS = {"src/base/host_id.cpp"}
PYTHON_ENVIRONMENT_READERS = {"coccl/config.py", "coccl/cluster.py"}
# The backend, its registration, and the report, which names torch's version where there is one.
TORCH_IMPORTERS = re.compile(r"coccl/(torch/\w+|_torch_autoload|info)\.py")


class Violation(NamedTuple):
    """A broken rule and where."""

    path: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


def cpp_files(root: Path) -> list[Path]:
    found = (file for top in ("include", "src", "python") for file in (root / top).rglob("*"))
    return sorted(file for file in found if file.suffix in {".hpp", ".cpp", ".h", ".cuh", ".cu"})


def python_files(root: Path) -> list[Path]:
    return sorted((root / "coccl").rglob("*.py"))


def layer_of(root: Path, file: Path) -> str:
    parts = file.relative_to(root).parts
    return parts[0] if parts[0] == "python" else parts[1]


def code_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a C++ file without comments, and outside of #include without string contents."""

    def blank(match: re.Match[str]) -> str:
        token = match.group()
        return token if token.lstrip().startswith("#") else re.sub(r"[^\n]", " ", token)

    tokens = r'^[ \t]*#[ \t]*include[ \t]*[<"][^>"\n]*[>"]|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    text = re.sub(tokens, blank, file.read_text(), flags=re.DOTALL | re.MULTILINE)
    yield from enumerate(text.splitlines(), 1)


def included(line: str) -> tuple[str, bool] | None:
    """The header that a line includes, and whether it is written as the project's own."""
    match = re.match(r'\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")', line)
    return (match[1] or match[2], bool(match[2])) if match else None


def include_violation(root: Path, file: Path, header: str, own: bool) -> str | None:
    name = layer_of(root, file)
    layer = LAYERS[name]
    if not own:
        bound = name == "python" and BINDING_HEADER.fullmatch(header)
        if STANDARD_HEADER.fullmatch(header) or header in layer.foreign or bound:
            return None
        return f"{name} may not include <{header}>"
    folder, _, rest = header.rpartition("/")
    if not folder:
        folder, rest, where = name, header, file.parent
    else:
        where = root / ("include" if folder == "coccl" else "src") / folder
    if folder not in layer.folders:
        return f'{name} may include {", ".join(sorted(layer.folders))} only, not "{header}"'
    if not (where / rest).is_file():
        return f'"{header}" is no file of this project; write others as <…>'
    return None


def include_violations(root: Path) -> Iterator[Violation]:
    for file in cpp_files(root):
        for number, line in code_lines(file):
            if (header := included(line)) and (rule := include_violation(root, file, *header)):
                yield Violation(str(file.relative_to(root)), number, rule)


def cuda_name_violations(root: Path) -> Iterator[Violation]:
    for file in cpp_files(root):
        name = layer_of(root, file)
        if LAYERS[name].names_cuda:
            continue
        for number, line in code_lines(file):
            if not included(line) and (match := CUDA_NAME.search(line)):
                rule = f"{name} may not name {match.group()}"
                yield Violation(str(file.relative_to(root)), number, rule)


def environment_violations(root: Path) -> Iterator[Violation]:
    for file in cpp_files(root):
        path = file.relative_to(root).as_posix()
        for number, line in code_lines(file):
            if ENVIRONMENT_NAME.search(line) and path not in CPP_ENVIRONMENT_READERS:
                yield Violation(path, number, "the environment is read elsewhere")
    for file in python_files(root):
        path = file.relative_to(root).as_posix()
        if path in PYTHON_ENVIRONMENT_READERS:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            if isinstance(node, ast.ImportFrom) and node.module == "os":
                name = next((a.name for a in node.names if a.name in {"environ", "getenv"}), "")
            if name in {"environ", "getenv"}:
                yield Violation(path, node.lineno, "the environment is read elsewhere")


def torch_violations(root: Path) -> Iterator[Violation]:
    for file in python_files(root):
        path = file.relative_to(root).as_posix()
        if TORCH_IMPORTERS.fullmatch(path):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            if any(module.split(".")[0] == "torch" for module in modules):
                yield Violation(path, node.lineno, "torch is imported in coccl/torch alone")


RULES = [include_violations, cuda_name_violations, environment_violations, torch_violations]


def plant(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_every_source_folder_has_a_layer() -> None:
    files = cpp_files(ROOT)
    assert files
    assert {layer_of(ROOT, file) for file in files} <= LAYERS.keys()


def test_includes_point_down_only() -> None:
    assert not list(map(str, include_violations(ROOT)))


def test_algorithms_and_codecs_name_no_cuda_or_nccl_symbol() -> None:
    assert not list(map(str, cuda_name_violations(ROOT)))


def test_the_environment_is_read_in_its_own_files_only() -> None:
    assert not list(map(str, environment_violations(ROOT)))


def test_torch_is_imported_in_its_own_files_only() -> None:
    assert not list(map(str, torch_violations(ROOT)))


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (
            "src/codecs/x.cpp",
            '#include "codec/lanes.hpp"\n#include "base/check.hpp"\n',
            'src/codecs/x.cpp:2: codecs may include codec only, not "base/check.hpp"',
        ),
        (
            "src/codec/x.hpp",
            '#include "transport/local.hpp"\n',
            "src/codec/x.hpp:1: codec may include base, coccl, codec only, "
            'not "transport/local.hpp"',
        ),
        (
            "src/transport/x.hpp",
            '#  include "codec/lanes.hpp"\n',
            "src/transport/x.hpp:1: transport may include base, coccl, transport only, "
            'not "codec/lanes.hpp"',
        ),
        (
            "src/base/x.hpp",
            '/* why\n*/\n#include "coccl/gone.hpp"\n',
            'src/base/x.hpp:3: "coccl/gone.hpp" is no file of this project; write others as <…>',
        ),
        (
            "include/coccl/x.hpp",
            "#include <cstdint>\n#include <cuda_runtime.h>\n",
            "include/coccl/x.hpp:2: coccl may not include <cuda_runtime.h>",
        ),
        (
            "python/x.cpp",
            "#include <nanobind/nanobind.h>\n#include <torch/extension.h>\n",
            "python/x.cpp:2: python may not include <torch/extension.h>",
        ),
        (
            "src/algorithms/x.cpp",
            'auto s = "cudaMalloc";  // ncclSend\nvoid f() { cudaMalloc(nullptr, 1); }\n',
            "src/algorithms/x.cpp:2: algorithms may not name cudaMalloc",
        ),
        (
            "src/codecs/x.cpp",
            "void f() { kernel<<<1, 1>>>(); }\n",
            "src/codecs/x.cpp:1: codecs may not name <<<",
        ),
        (
            "src/algorithms/x.hpp",
            "ncclComm_t comm();\n",
            "src/algorithms/x.hpp:1: algorithms may not name ncclComm_t",
        ),
        (
            "src/communicator/x.cpp",
            'auto* v = std::getenv("X");\n',
            "src/communicator/x.cpp:1: the environment is read elsewhere",
        ),
        (
            "coccl/x.py",
            'import os\n\nos.environ["X"]\n',
            "coccl/x.py:3: the environment is read elsewhere",
        ),
        (
            "coccl/x.py",
            "from os import path, getenv\n",
            "coccl/x.py:1: the environment is read elsewhere",
        ),
        (
            "coccl/x.py",
            "def f():\n    import torch.distributed as dist\n",
            "coccl/x.py:2: torch is imported in coccl/torch alone",
        ),
        (
            "coccl/x.py",
            "from torch import Tensor\n",
            "coccl/x.py:1: torch is imported in coccl/torch alone",
        ),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, path: str, text: str, found: str) -> None:
    plant(tmp_path, {"src/codec/lanes.hpp": "", "src/base/check.hpp": "", path: text})
    assert [str(violation) for rule in RULES for violation in rule(tmp_path)] == [found]


def test_a_tree_that_keeps_the_rules_has_no_violation(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "include/coccl/types.hpp": "#pragma once\n#include <cstdint>\n",
            "include/coccl/coccl.h": "#include <stddef.h>\n",
            "src/base/check.hpp": '#include <cuda_runtime.h>\n#include "coccl/types.hpp"\n',
            "src/base/host_id.cpp": 'auto* v = std::getenv("NCCL_HOSTID");\n',
            "src/codec/lanes.hpp": '#include "base/check.hpp"\ncudaStream_t s;\n',
            "src/codecs/int8.cpp": '#include "codec/lanes.hpp"  // not cudaMalloc\n',
            "src/algorithms/ring.cpp": '#include "coccl/types.hpp"\nauto p = Place::cuda;\n',
            "python/bind.hpp": "#include <nanobind/nanobind.h>\n",
            "python/module.cpp": '#include "bind.hpp"\n#include "coccl/types.hpp"\n',
            "coccl/torch/work.py": "import torch\nfrom ..config import load\n",
            "coccl/config.py": 'import os\n\nos.environ.get("COCCL_COMPRESSOR")\n',
        },
    )
    assert not [str(violation) for rule in RULES for violation in rule(tmp_path)]
