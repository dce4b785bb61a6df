"""Two kinds of users beside each other, each with its own share, lengths, row and objectives.

    locust -f mixed_classes.py --host http://sglang:30000 --llm-model deepseek-r1 -u 40 -t 10m --headless

A `name` gives a class a row of its own in every table; its `slo` is judged by that row. Exit code 3 where one is
missed. `--llm-slo` would take the place of both.
"""

from locust import between

from llm_locust import OpenAIChatUser, synthetic


class Chat(OpenAIChatUser):
    """Three of four users: short questions, somebody waits for the first word."""

    weight = 3
    name = "chat"
    prompts = synthetic(input_tokens="64-512", output_tokens=128)
    wait_time = between(1, 3)
    slo = "ttft p95 < 2s; tpot p95 < 60ms; error_rate < 1%"


class Digest(OpenAIChatUser):
    """One of four: long documents into a short summary, the whole of it within a minute."""

    weight = 1
    name = "digest"
    prompts = synthetic(input_tokens="4096-8192", output_tokens=256, shared_prefix=0.1)
    slo = "e2e p95 < 60s; goodput(e2e < 90s) > 99%"
