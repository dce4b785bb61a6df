"""The user that `llm-locust calibrate` runs: the suite's own, as it is."""

from llm_locust import LLMUser


class User(LLMUser):
    """Asks the run's prompts."""
