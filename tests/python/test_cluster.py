"""The virtual cluster: what ranks are told, and how they end. All of it on a CPU, with no torch."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coccl.cluster import TIMEOUT_EXIT_CODE, parse_layout, rank_environments
from coccl.errors import ArgumentError

pytestmark = pytest.mark.timeout(60)


def launch(
    *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The launcher as a user starts it."""
    return subprocess.run(
        [sys.executable, "-m", "coccl.cluster", *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, **(environment or {})},
    )


def python(source: str) -> list[str]:
    """A command that runs `source` in a new interpreter."""
    return ["--", sys.executable, "-c", source]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


def test_every_rank_is_told_its_rank_and_its_host() -> None:
    told = launch(
        "left left right",
        *python(
            "import os; print(*(os.environ[k] for k in "
            "('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'NCCL_HOSTID', 'MASTER_ADDR')))"
        ),
    )
    assert told.returncode == 0, told.stderr
    assert sorted(told.stdout.splitlines()) == [
        "[0] 0 3 0 left 127.0.0.1",
        "[1] 1 3 0 left 127.0.0.1",
        "[2] 2 3 0 right 127.0.0.1",
    ]


def test_all_ranks_share_one_port_on_which_rank_0_can_listen() -> None:
    told = launch(
        "a b",
        *python(
            "import os, socket; port = int(os.environ['MASTER_PORT'])\n"
            "if os.environ['RANK'] == '0': socket.socket().bind(('127.0.0.1', port))\n"
            "print(port)"
        ),
    )
    assert told.returncode == 0, told.stderr
    ports = {line.split()[1] for line in told.stdout.splitlines()}
    assert len(ports) == 1


def test_nccl_stays_on_the_loopback_device_whatever_the_user_had_set() -> None:
    given = {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "0", "NCCL_NVLS_ENABLE": "1"}
    for environment in rank_environments(["a", "b"], given, port=1234):
        assert environment["NCCL_SOCKET_IFNAME"] == "lo"
        assert environment["NCCL_IB_DISABLE"] == "1"
        assert environment["NCCL_NVLS_ENABLE"] == "0"
        assert environment["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"


def test_the_users_own_limits_win_over_defaults() -> None:
    (default,) = rank_environments(["a"], {}, port=1234)
    (chosen,) = rank_environments(["a"], {"NCCL_MAX_CTAS": "4", "OMP_NUM_THREADS": "3"}, port=1234)
    assert default["NCCL_MAX_CTAS"] == "8"
    assert chosen["NCCL_MAX_CTAS"] == "4"
    assert chosen["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize(
    ("before", "after"), [({}, "/x/nccl.so"), ({"LD_PRELOAD": "/y.so"}, "/x/nccl.so:/y.so")]
)
def test_a_chosen_nccl_is_preloaded_before_everything_else(
    before: dict[str, str], after: str
) -> None:
    (environment,) = rank_environments(["a"], before, port=1234, nccl="/x/nccl.so")
    assert environment["LD_PRELOAD"] == after


def test_output_and_errors_keep_their_streams_and_say_whose_they_are() -> None:
    told = launch(
        "a", *python("import sys; print('one\\ntwo'); print('three', end='', file=sys.stderr)")
    )
    assert told.stdout == "[0] one\n[0] two\n"
    assert told.stderr == "[0] three\n"


def test_a_long_output_arrives_whole() -> None:
    told = launch("a b", *python("for line in range(20000): print(line)"))
    for rank in "01":
        lines = [line for line in told.stdout.splitlines() if line.startswith(f"[{rank}] ")]
        assert lines == [f"[{rank}] {number}" for number in range(20000)]


def test_the_exit_code_of_the_first_failing_rank_is_returned_and_the_others_are_ended() -> None:
    begun = time.monotonic()
    told = launch(
        "a a b b",
        *python(
            "import os, sys, time\n"
            "if os.environ['RANK'] == '2': time.sleep(1); sys.exit(7)\n"
            "print(os.getpid()); time.sleep(1000)"
        ),
    )
    assert told.returncode == 7
    assert time.monotonic() - begun < 20
    assert "rank 2 exited with 7" in told.stderr
    pids = [int(line.split()[1]) for line in told.stdout.splitlines()]
    assert len(pids) == 3
    assert all(wait_until_gone(pid) for pid in pids)


def test_a_rank_that_a_signal_ended_counts_as_failed() -> None:
    told = launch(
        "a b",
        *python(
            "import os, signal, time\n"
            "if os.environ['RANK'] == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
            "time.sleep(1000)"
        ),
    )
    assert told.returncode == 128 + signal.SIGKILL
    assert "rank 1 was ended by SIGKILL" in told.stderr


def test_ranks_that_outstay_the_timeout_are_ended_even_if_they_ignore_sigterm() -> None:
    told = launch(
        "a b",
        "--timeout",
        "2",
        *python(
            "import os, signal, sys, time\n"
            "if os.environ['RANK'] == '0': sys.exit(0)\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid()); time.sleep(1000)"
        ),
    )
    assert told.returncode == TIMEOUT_EXIT_CODE
    assert "still running after 2 s: rank 1" in told.stderr
    assert wait_until_gone(int(told.stdout.split()[1]))


def test_what_a_rank_started_ends_with_it() -> None:
    told = launch("a", *python("import subprocess; print(subprocess.Popen(['sleep', '1000']).pid)"))
    assert told.returncode == 0
    assert wait_until_gone(int(told.stdout.split()[1]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ending_the_launcher_ends_the_ranks(number: signal.Signals) -> None:
    command = python("import os, time; print(os.getpid()); time.sleep(1000)")
    with subprocess.Popen(
        [sys.executable, "-m", "coccl.cluster", "a b", *command], stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        pids = [int(launcher.stdout.readline().split()[1]) for _ in range(2)]
        launcher.send_signal(number)
        assert launcher.wait(30) == 128 + number
    assert all(wait_until_gone(pid) for pid in pids)


@pytest.mark.parametrize("layout", ["", "  ", "a,b", "a b/c", "a $x"])
def test_a_bad_layout_is_refused_with_its_value(layout: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f'layout "{layout}"')):
        parse_layout(layout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a,b", "--", "true"], 'bad host "a,b"'),
        (["a b"], "no command"),
        (["a b", "--"], "no command"),
        (["a b", "--timeout", "0", "--", "true"], "timeout 0"),
        (["a b", "--timeout", "nan", "--", "true"], "timeout nan"),
        (["a b", "--nccl", "/no/nccl.so", "--", "true"], 'no NCCL library at "/no/nccl.so"'),
        (["a b", "--", "/no/such/program"], 'cannot start "/no/such/program"'),
    ],
)
def test_a_bad_command_line_ends_in_one_clear_error(arguments: list[str], message: str) -> None:
    told = launch(*arguments)
    assert told.returncode == 2
    assert told.stdout == ""
    assert message in told.stderr.splitlines()[-1]
    assert "Traceback" not in told.stderr


@pytest.fixture
def mps(tmp_path: Path) -> dict[str, str]:
    """PATH with a stand-in for the MPS control program that writes down what it was asked."""
    control = tmp_path / "bin" / "nvidia-cuda-mps-control"
    control.parent.mkdir()
    control.write_text(
        "#!/bin/sh\n"
        f'exec >>"{tmp_path}/asked"\n'
        'if [ "$1" = -d ]; then echo start "$CUDA_MPS_PIPE_DIRECTORY"; exit "${MPS_EXIT:-0}"; fi\n'
        'read request; echo "$request" "$CUDA_MPS_PIPE_DIRECTORY"\n'
    )
    control.chmod(control.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{control.parent}:{os.environ['PATH']}", "ASKED": str(tmp_path / "asked")}


SHOW_MPS = "import os; print(os.environ.get('CUDA_MPS_PIPE_DIRECTORY'))"


@pytest.mark.parametrize("code", [0, 3])
def test_an_mps_server_serves_the_ranks_and_quits_at_the_end(
    mps: dict[str, str], code: int
) -> None:
    told = launch("a", *python(f"{SHOW_MPS}; raise SystemExit({code})"), environment=mps)
    assert told.returncode == code
    pipe = told.stdout.split()[1]
    asked = Path(mps["ASKED"]).read_text().splitlines()
    assert asked == [f"start {pipe}", f"get_server_list {pipe}", f"quit {pipe}"]
    assert not Path(pipe).parent.exists()


def test_a_configured_mps_server_is_used_and_left_alone(mps: dict[str, str]) -> None:
    told = launch("a", *python(SHOW_MPS), environment={**mps, "CUDA_MPS_PIPE_DIRECTORY": "/own"})
    assert told.stdout == "[0] /own\n"
    assert not Path(mps["ASKED"]).exists()


def test_ranks_run_without_mps_if_its_server_does_not_start(mps: dict[str, str]) -> None:
    told = launch("a", *python(SHOW_MPS), environment={**mps, "MPS_EXIT": "1"})
    assert told.returncode == 0
    assert told.stdout == "[0] None\n"
    assert "MPS server did not start" in told.stderr
