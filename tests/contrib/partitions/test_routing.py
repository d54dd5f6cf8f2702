"""Which partition a job belongs to, and how partitions spread over nodes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioqless.contrib.partitions.routing import (
    MAX_PARTITIONS,
    check_count,
    generate_jid_in,
    name_partitions,
    partition_of,
    recurring_jid,
)
from aioqless.redis.cluster import SLOTS, slot_of

COUNTS = st.integers(1, MAX_PARTITIONS)
NAMES = st.text(min_size=1, max_size=50)


@pytest.mark.parametrize("count", [2, 3, 7, 48, 100, 1024])
def test_partitions_have_slots_in_order_one_in_each_equal_part(count: int) -> None:
    slots = [slot_of(name) for name in name_partitions("billing", count)]
    assert [slot * count // SLOTS for slot in slots] == list(range(count))


def test_all_numbers_of_partitions_share_the_first_namespace() -> None:
    assert len({name_partitions("billing", count)[0] for count in (2, 3, 48, 1024)}) == 1


def test_one_partition_has_the_namespace_and_jids_as_they_are() -> None:
    assert name_partitions("billing", 1) == ("billing",)
    assert name_partitions("{billing}", 1) == ("{billing}",)
    assert recurring_jid("nightly", 1) == "nightly"


def test_namespace_in_braces_has_the_same_partitions() -> None:
    assert name_partitions("{billing}", 48) == name_partitions("billing", 48)


def test_namespace_with_braces_inside_is_refused() -> None:
    with pytest.raises(ValueError, match=r"namespace 'a\{b\}' must have no braces"):
        name_partitions("a{b}", 48)


@pytest.mark.parametrize("count", [0, -1, 1025, 100_000])
def test_number_of_partitions_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=r"partitions must be from 1 to 1,024 \(got "):
        check_count(count)


@pytest.mark.parametrize("count", ["48", 4.0, True, None])
def test_number_of_partitions_of_another_type_is_refused(count: int) -> None:
    with pytest.raises(TypeError, match="partitions must be an integer"):
        check_count(count)


def test_partitions_of_jids_stay_the_same() -> None:
    """Jobs would be lost to their clients if a later version computed other partitions."""
    jids = ("a", "order-17", "0" * 24, "é", "{order}-17", "0" * 22 + "4a", "0" * 22 + "4A")
    assert [partition_of(jid, 48) for jid in jids] == [3, 20, 0, 14, 24, 26, 37]


def test_namespaces_of_partitions_stay_the_same() -> None:
    """Jobs would be lost if a later version looked for them elsewhere."""
    assert name_partitions("billing", 48)[:3] == (
        "billing{0.8631}",
        "billing{1.6}",
        "billing{2.42}",
    )
    assert name_partitions("billing", 3)[1:] == ("billing{1.0}", "billing{2.0}")


@given(name=NAMES, count=COUNTS)
def test_partition_is_in_range(name: str, count: int) -> None:
    assert 0 <= partition_of(name, count) < count


@given(data=st.data(), count=COUNTS)
def test_generated_jid_belongs_to_its_partition_and_looks_like_any_other(
    data: st.DataObject, count: int
) -> None:
    partition = data.draw(st.integers(0, count - 1))
    jid = generate_jid_in(partition, count)
    assert partition_of(jid, count) == partition
    assert len(jid) == 24
    assert set(jid) <= set("0123456789abcdef")
    other = generate_jid_in(partition, count, "f" * 24)
    assert other.startswith("f" * 20)
    assert partition_of(other, count) == partition


@given(partition=st.integers(0, 7))
@pytest.mark.parametrize(
    "suffix", ["-1", "-1-2", "-1-2-3", "-failure-1", "-1-failure-2", "-handler-failure-1-4-2"]
)
def test_jobs_that_a_job_calls_and_that_its_failures_put_share_its_partition(
    partition: int, suffix: str
) -> None:
    assert partition_of(generate_jid_in(partition, 8) + suffix, 8) == partition


@pytest.mark.parametrize("suffix", ["-failure-1", "-failure-1-2", "-handler-failure-3-1-1"])
def test_branches_of_a_chosen_jid_and_the_jobs_that_they_call_share_its_partition(
    suffix: str,
) -> None:
    assert partition_of(f"order-7{suffix}", 64) == partition_of("order-7", 64)


@given(
    jid=NAMES.filter(lambda jid: not {"{", "}"} & set(jid)),
    number=st.integers(0, 10**9),
    count=COUNTS,
)
def test_instances_of_a_recurring_job_share_its_partition(
    jid: str, number: int, count: int
) -> None:
    recurring = recurring_jid(jid, count)
    assert partition_of(f"{recurring}-{number}", count) == partition_of(recurring, count)
    assert recurring_jid(recurring, count) == recurring


def test_recurring_jid_with_a_single_brace_is_refused() -> None:
    with pytest.raises(ValueError, match="jid 'a}' of a recurring job must have no single brace"):
        recurring_jid("a}", 48)


@given(partition=st.integers(0, 47), number=st.integers(0, 10**9))
def test_instances_of_a_recurring_job_with_a_random_jid_share_its_partition(
    partition: int, number: int
) -> None:
    jid = generate_jid_in(partition, 48)
    assert recurring_jid(jid, 48) == jid
    assert partition_of(f"{jid}-{number}", 48) == partition


@given(tag=st.text(min_size=1).filter(lambda tag: "}" not in tag), name=NAMES)
def test_part_in_braces_decides_alone(tag: str, name: str) -> None:
    assert partition_of(f"{{{tag}}}{name}", 48) == partition_of(f"{{{tag}}}", 48)


@pytest.mark.parametrize("form", ["{}", "order-{}", "user:{}:mail", "00000000-{:012x}"])
def test_numbered_jids_spread_evenly(form: str) -> None:
    counts = Counter(partition_of(form.format(number), 48) for number in range(48_000))
    assert len(counts) == 48
    assert min(counts.values()) > 850
    assert max(counts.values()) < 1150
