"""Multi-turn load: each user talks, and each turn sends all that was said before.

    locust -f conversation.py --host http://sglang:30000 --llm-model deepseek-r1 -u 16 -t 10m --headless
    locust -f conversation.py ... --llm-prompts sharegpt:ShareGPT.json      # recorded questions, real answers

The history holds the server's own answers, so its prefix cache may answer: see "Cached share" in the report.
"""

from locust import between

from llm_locust import ConversationUser, synthetic


class Talker(ConversationUser):
    """Says four to eight things, with a pause to read and think before each."""

    prompts = synthetic(input_tokens="32-256", output_tokens="64-256")
    turns = (4, 8)
    wait_time = between(0.5, 2)
    session_header = "X-Session-Id"  # a router that keeps a session on one replica reads it
