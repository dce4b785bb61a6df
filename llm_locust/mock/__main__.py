"""``python -m llm_locust.mock``."""

from __future__ import annotations

import sys

from llm_locust.mock import main

sys.exit(main())
