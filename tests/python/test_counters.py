from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import coccl
from coccl.counters import count_bypass, count_call


@pytest.fixture(autouse=True)
def _zero() -> Iterator[None]:
    coccl.reset_stats()
    yield
    coccl.reset_stats()  # processes that later tests fork would begin with these counts


def test_raw_bytes_are_those_of_the_optimal_uncoded_algorithm() -> None:
    count_call("all_reduce", 4000, 4, 1500)
    count_call("reduce_scatter", 4000, 4, 750)
    count_call("all_gather", 4000, 4, 3000)
    stats = coccl.stats()
    assert stats.all_reduce.raw_bytes == 6000
    assert stats.all_reduce.ratio == 4
    assert stats.reduce_scatter.raw_bytes == 3000
    assert stats.all_gather.ratio == 1


def test_a_snapshot_does_not_change() -> None:
    before = coccl.stats()
    count_bypass("all_reduce", "dtype")
    assert before.all_reduce.bypasses == {}
    assert coccl.stats().all_reduce.bypasses == {"dtype": 1}
    coccl.reset_stats()
    assert coccl.stats() == before


def test_counting_from_many_threads_loses_nothing() -> None:
    def count() -> None:
        for _ in range(1000):
            count_call("all_gather", 8, 2, 1)
            count_bypass("all_gather", "size")

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert coccl.stats().all_gather.calls == 8000
    assert coccl.stats().all_gather.bypasses["size"] == 8000


def test_the_table_shows_calls_ratio_and_reasons() -> None:
    count_call("all_reduce", 4_000_000, 2, 1_000_000)
    count_bypass("all_reduce", "size")
    count_bypass("all_reduce", "dtype")
    header, row, *_ = str(coccl.stats()).splitlines()
    assert header.split() == ["collective", "coded", "raw", "MB", "sent", "MB", "ratio", "bypassed"]
    assert row.split() == ["all_reduce", "1", "4.00", "1.00", "4.00", "dtype", "1,", "size", "1"]
