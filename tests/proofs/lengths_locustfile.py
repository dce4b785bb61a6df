"""A user class and a shape, each with lengths of its own: what the proof of their order runs."""

from llm_locust import ConcurrencySteps, LLMUser, synthetic


class Own(LLMUser):
    """Has prompts of its own."""

    prompts = synthetic(input_tokens="300-400", output_tokens=30)


class OwnSteps(ConcurrencySteps):
    """Demands an input length of every prompt."""

    levels = (2,)
    input_tokens = 77
