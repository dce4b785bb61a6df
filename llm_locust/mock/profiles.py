"""Profiles of known deployments."""

from __future__ import annotations

PROFILES: dict[str, None] = {"deepseek-r1-32xh100": None}
