"""A load test without code: every dialect, prompt source and shape by option.

    locust -f llm.py --host http://sglang:30000 --llm-model deepseek-r1 -u 8 --headless --llm-requests 100
    locust -f llm.py --host http://sglang:30000 --llm-model deepseek-r1 --llm-shape ConcurrencySteps --headless
    llm-locust options        # all of them, with their defaults

The API is `--llm-dialect` (openai-chat where it is not given); the user asks one prompt after the other.
"""

from llm_locust import LLMUser


class User(LLMUser):
    """Asks the run's prompts in the run's dialect."""
