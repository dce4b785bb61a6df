"""A night of one load, with a row an hour: does it hold?

    locust -f soak.py --host http://sglang:30000 --llm-model deepseek-r1 --run-time 10h --headless
    locust -f soak.py ... --processes 4      # where one core is not enough to keep the times exact

Files grow while it runs and are readable at any time; `--run-time` wins over the shape's hour.
"""

from llm_locust import OpenAIChatUser, Soak


class User(OpenAIChatUser):
    """What every hour of the night has to keep."""

    slo = "error_rate < 0.1%; goodput(ttft < 5s, tpot < 100ms) > 99%"


class Night(Soak):
    """Two thirds of what the steps found the server to carry."""

    rate = 8
    users = 512
    input_tokens = "512-1536"
    output_tokens = "256-1536"
