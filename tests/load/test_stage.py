"""Orders and tallies cross the wire whole; quotas and shares are dealt without a remainder."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.deal import CLOSED_LOOP_STRIDE, Dealer, deal_quota, order_of, return_quota
from llm_locust.load.stage import NO_WARMUP, Stage, StageOrder, Tally, Warmup

from .stand import S, order

WEIGHTS = (("a", 3), ("b", 2), ("c", 2))


def test_order_survives_its_message() -> None:
    """Builtins out, the same order in: msgpack of builtins is all that Locust carries."""
    sent = order(
        3, "rate-5", 7, worker="b", shares=((0, WEIGHTS), (500, WEIGHTS[:2])), arrivals=ArrivalSpec("gamma", cv=0.25),
        profile=((0.0, 5.0), (60.0, 20.0)), quota=40, first_index=10_000, input_tokens="512-2048",
    )  # fmt: skip
    message = msgspec.msgpack.decode(msgspec.msgpack.encode(sent.to_message()))
    assert StageOrder.from_message(message) == sent
    assert (sent.weights, sent.own_users) == (WEIGHTS[:2], 2)


def test_order_of_another_version_is_refused() -> None:
    """What cannot be read is an error, never a guess."""
    with pytest.raises(msgspec.ValidationError, match="number"):
        StageOrder.from_message({"label": "x"})


def test_tally_survives_its_message() -> None:
    """The counters come over as they are."""
    tally = Tally(number=1, label="x", issued=5, warm=True, last_steady_end_ns=17)
    assert Tally.from_message(msgspec.to_builtins(tally)) == tally


def test_tallies_add_up() -> None:
    """Counts are summed, maxima taken, and what all must have reached holds only when all have."""
    one = Tally(number=1, label="x", phase="steady", issued=5, warm=True, drained=True, exhausted=True, index_end=90,
                last_steady_end_ns=100, unstarted_wait_max_ns=3, backlog_max=2, users=4)  # fmt: skip
    two = Tally(number=1, label="x", phase="steady", issued=7, warm=False, drained=True, exhausted=True, index_end=80,
                last_steady_end_ns=None, unstarted_wait_max_ns=9, backlog_max=1, users=3)  # fmt: skip
    assert Tally.merged([one, two]) == Tally(
        number=1, label="x", phase="steady", issued=12, warm=False, drained=True, exhausted=True, index_end=90,
        last_steady_end_ns=100, unstarted_wait_max_ns=9, backlog_max=3, users=7,
    )  # fmt: skip
    assert Tally.merged([]) is None
    assert one.issued == 5


@pytest.mark.parametrize(
    ("requests", "weights", "dealt"),
    [
        (100, (("a", 3), ("b", 2), ("c", 2)), {"a": 43, "b": 29, "c": 28}),
        (7, (("a", 3), ("b", 2), ("c", 2)), {"a": 3, "b": 2, "c": 2}),
        (1, (("a", 1), ("b", 1)), {"a": 1, "b": 0}),
        (10, (("a", 0), ("b", 4)), {"a": 0, "b": 10}),
        (10, (("a", 0),), {"a": 0}),
    ],
    ids=["uneven", "one each user", "fewer than workers", "a worker without users", "nobody"],
)
def test_quota_is_dealt_by_users(requests: int, weights: tuple[tuple[str, int], ...], dealt: dict[str, int]) -> None:
    """--llm-requests N is dealt whole: by users, largest remainder first."""
    assert deal_quota(requests, weights) == dealt


@given(requests=st.integers(0, 10_000), users=st.lists(st.integers(1, 500), min_size=1, max_size=20))
def test_quota_is_never_lost_or_made(requests: int, users: list[int]) -> None:
    """The parts add up to the whole, each within one of its exact share."""
    weights = tuple((str(place), count) for place, count in enumerate(users))
    dealt = deal_quota(requests, weights)
    assert sum(dealt.values()) == requests
    for worker, count in weights:
        assert abs(dealt[worker] - requests * count / sum(users)) < 1


def test_quota_of_a_lost_worker_is_returned() -> None:
    """What it had not issued goes to the others; what it had issued is gone with it."""
    quotas = deal_quota(100, WEIGHTS)
    returned = return_quota(quotas, "a", 13, (("b", 2), ("c", 2)))
    assert returned == {"b": 29 + 15, "c": 28 + 15}
    assert return_quota(quotas, "a", 50, (("b", 2), ("c", 2))) == {"b": 29, "c": 28}


def test_reshare_begins_at_the_first_arrival_after_the_message() -> None:
    """Under a schedule the announced index is the first one due at or after the offset."""
    dealer = Dealer(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 10.0),)), WEIGHTS)
    dealer.reshare((("a", 3), ("b", 2)), int(12.34 * S))
    assert [own.shares for own in dealer.orders()] == [((0, WEIGHTS), (124, (("a", 3), ("b", 2))))] * 2


def test_reshare_replaces_one_that_was_announced_for_later() -> None:
    """Two changes at once: the later word holds, shares stay in ascending order."""
    dealer = Dealer(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 10.0),)), WEIGHTS)
    dealer.reshare((("a", 3), ("b", 2)), 20 * S)
    dealer.reshare((("a", 3),), 20 * S)
    assert dealer.orders()[0].shares == ((0, WEIGHTS), (200, (("a", 3),)))


def test_reshare_of_a_closed_loop_uses_fresh_indices() -> None:
    """Nobody knows how far the others are: new shares begin beyond every index in use."""
    dealer = Dealer(order(), WEIGHTS)
    dealer.reshare((("a", 3),), 0)
    dealer.reshare((("a", 3), ("d", 1)), 0)
    assert [index for index, _ in dealer.orders()[0].shares] == [0, CLOSED_LOOP_STRIDE, 2 * CLOSED_LOOP_STRIDE]


def test_arrivals_of_a_lost_worker_are_unissued_until_others_take_over() -> None:
    """Constant 10/s, one of two equal workers silent from 30 s, shares new from 36 s: half of 60 arrivals."""
    dealer = Dealer(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 10.0),)), (("a", 1), ("b", 1)), 5000)
    dealer.lost("b", (("a", 1),), steady_issued=140, last_seen_ns=30 * S, offset_ns=36 * S)
    assert dealer.unissued == pytest.approx(30, abs=1)
    assert [(own.worker, own.quota) for own in dealer.orders()] == [("a", 2500 + 2500 - 140)]


def test_worker_without_a_share_knows_the_stage_and_gets_nothing_of_it() -> None:
    """One that joins, or answers before any other: the order is there, quota 0, no share; later it is dealt to."""
    dealer = Dealer(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 10.0),)), (), 40)
    guest = dealer.order_for("new")
    assert (guest.worker, guest.quota, guest.own_users, dealer.orders()) == ("new", 0, 0, [])
    dealer.deal_anew((("new", 3),))
    assert [(own.worker, own.quota) for own in dealer.orders()] == [("new", 40)]


def test_new_rates_keep_shares_and_quotas() -> None:
    """An edited rate is sent as an order of the same number."""
    dealer = Dealer(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 10.0),)), WEIGHTS, 70)
    dealer.amend(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 10.0), (30.0, 20.0))))
    assert [(own.profile, own.quota) for own in dealer.orders()] == [
        (((0.0, 10.0), (30.0, 20.0)), quota) for quota in (30, 20, 20)
    ]


def test_order_of_stages_that_run_through_has_all_their_rates() -> None:
    """A spike is one order: its rates by their instants."""
    rows = [
        Stage(label=label, users=8, rate_per_s=rate, arrivals=ArrivalSpec(), hold_s=hold, through=label != "a")
        for label, rate, hold in (("a", 5.0, 300.0), ("b", 20.0, 60.0), ("c", 5.0, 300.0))
    ]
    made = order_of(rows, 2, 7, 10_000)
    assert (made.label, made.number, made.seed, made.first_index) == ("a", 2, 7, 10_000)
    assert made.profile == ((0.0, 5.0), (300.0, 20.0), (360.0, 5.0))


@pytest.mark.parametrize(
    ("rule", "text"), [(Warmup(), "1"), (Warmup(3), "3"), (Warmup(0, 30.0), "30s"), (NO_WARMUP, "0")]
)
def test_warm_up_is_spelled_as_the_option_does(rule: Warmup, text: str) -> None:
    """What is printed can be typed."""
    assert str(rule) == text
