"""The course of one row: when its ramp and warm-up are over, and when and why its window ends.

Decisions are made ahead of their instant, so that it can be announced to every worker before it comes. Pure: the time
and the counters are handed in. All instants are ns of one monotonic clock.
"""

from __future__ import annotations

from llm_locust.load.stage import RAMP, STEADY, WARMUP, Stage, Tally

LEAD_NS = 200_000_000
"""How far ahead a change is announced at least: longer than a message and a busy hub take."""

HORIZON_NS = 1_500_000_000
"""How far ahead an end is decided: longer than one step (Locust's tick comes once a second) and the lead."""


USERS_LIMIT_S = 60.0
"""How long a stage waits for its users beyond the time to spawn them; then it goes on with those that are there."""


class Course:
    """Phases and end of one row. ``end_ns``: an end that the plan fixed (a row of stages that run through)."""

    def __init__(self, stage: Stage, phase: str, at_ns: int, *, end_ns: int | None = None) -> None:
        """Begin in a phase at an instant."""
        self.stage = stage
        self.phase = phase
        self.phase_ns = at_ns
        self.steady_ns = at_ns if phase == STEADY else None
        self.held_from_ns = self.steady_ns
        self.end_ns = end_ns
        self.note = ""  # what is to be said about the row

    def restart(self, stage: Stage, phase: str, at_ns: int) -> None:
        """Go on as another stage from an instant; what was held so far counts."""
        self.stage, self.phase, self.phase_ns = stage, phase, at_ns
        self.steady_ns = at_ns if phase == STEADY else None

    def advance(self, now_ns: int, *, users_there: bool, tally: Tally | None) -> tuple[str, int] | None:
        """Give the next phase and its instant when it is known, None: the phase goes on."""
        at_ns: int | None = None
        phase = STEADY
        if self.phase == RAMP:
            at_ns = self._ramp_end(now_ns, users_there=users_there)
            phase = after_ramp(self.stage)
        elif self.phase == WARMUP:
            at_ns = self._warm_at(now_ns, tally)
        if at_ns is None:
            return None
        self.phase, self.phase_ns = phase, at_ns
        if phase == STEADY:
            self.steady_ns = at_ns
            self.held_from_ns = self.held_from_ns or at_ns
        return phase, at_ns

    def _ramp_end(self, now_ns: int, *, users_there: bool) -> int | None:
        """Tell when every user has started; users that do not come are not waited for without end."""
        if not users_there:
            if now_ns < self.phase_ns + users_limit_ns(self.stage):
                return None
            self.note = f"went on without all of the {self.stage.users} users"
        return self._when(self.phase_ns + int(self.stage.spread_s * 1e9), now_ns)

    @staticmethod
    def _when(at_ns: int, now_ns: int) -> int | None:
        """Give the instant if it is near enough to be announced, moved to the earliest that can be."""
        return max(at_ns, now_ns + LEAD_NS) if now_ns + HORIZON_NS >= at_ns else None

    def _warm_at(self, now_ns: int, tally: Tally | None) -> int | None:
        """Tell when the warm-up is over: by time, by requests, or at its bound of one stage length."""
        if self.stage.warmup.duration_s:
            return self._when(self.phase_ns + int(self.stage.warmup.duration_s * 1e9), now_ns)
        if tally is not None and tally.warm and tally.finished and now_ns >= self.phase_ns:
            return now_ns + LEAD_NS
        bound_ns = self.phase_ns + int((self.stage.hold_s or self.stage.max_hold_s) * 1e9)
        at_ns = self._when(bound_ns, now_ns)
        if at_ns is not None:
            self.note = "the warm-up was cut after one stage length: not every user had finished a request"
        return at_ns

    def least_end_ns(self) -> int | None:
        """Give the earliest end of the row as far as it is known, None where the run ends it."""
        if self.end_ns is not None or self.stage.hold_s is None:
            return self.end_ns
        from_ns = self.held_from_ns or self.phase_ns
        return from_ns + int(self.stage.hold_s * 1e9)

    def end(self, now_ns: int, tally: Tally | None) -> tuple[int, str] | None:
        """Give the end of the window and its reason when both are known, None: the row goes on."""
        if self.end_ns is not None:
            at_ns = self._when(self.end_ns, now_ns)
            return None if at_ns is None else (at_ns, "hold")
        if self.steady_ns is None or now_ns < self.steady_ns:
            return None
        if tally is not None and tally.exhausted and not tally.in_flight:
            reason = "trace" if self.stage.requests is None else "requests"
            return max(tally.last_steady_end_ns or 0, self.steady_ns), reason
        if self.stage.hold_s is None:
            return None
        return self._hold_end(now_ns, tally)

    def _hold_end(self, now_ns: int, tally: Tally | None) -> tuple[int, str] | None:
        """Hold at least ``hold``; a closed loop until each user has its minimum of requests, at most ``max_hold``."""
        assert self.stage.hold_s is not None
        assert self.held_from_ns is not None
        at_ns = self._when(self.held_from_ns + int(self.stage.hold_s * 1e9), now_ns)
        enough = self.stage.open_loop or (tally is not None and tally.users > 0 and not tally.users_short)
        if at_ns is not None and enough:
            return at_ns, "hold"
        most_s = max(self.stage.hold_s, self.stage.max_hold_s)
        at_ns = self._when(self.held_from_ns + int(most_s * 1e9), now_ns)
        return None if at_ns is None else (at_ns, "max hold")


def users_limit_ns(stage: Stage) -> int:
    """Give how long the stage's users are waited for."""
    return int((stage.users / stage.spawn_rate + USERS_LIMIT_S) * 1e9)


def after_ramp(stage: Stage) -> str:
    """Give the phase that follows the ramp."""
    return WARMUP if stage.warmup.requests_per_user or stage.warmup.duration_s else STEADY


def first_phase(stage: Stage, *, users_there: bool) -> str:
    """Give the phase in which the stage opens: no ramp where nobody is waited for and nothing is spread."""
    return after_ramp(stage) if not stage.spread_s and (stage.users_first or users_there) else RAMP
