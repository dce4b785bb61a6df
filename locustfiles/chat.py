"""A load test of one's own: which prompts, and what a user does.

    locust -f chat.py --host http://sglang:30000 --llm-model deepseek-r1 -u 8 -t 5m --headless

A class without a task asks its prompts one after the other; this one has a task, so that is all it does.
"""

from locust import task

from llm_locust import OpenAIChatUser, llm_events, synthetic


class Chat(OpenAIChatUser):
    """Asks a prompt, and sometimes a question about the answer."""

    prompts = synthetic(input_tokens="512-1024", output_tokens=256)

    @task
    def ask_and_doubt(self):
        """Two requests: the second has the first one's answer in its history."""
        answer = self.client.ask(name="ask")
        if not answer.ok:
            return
        history = [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "Are you sure?"}]
        self.client.chat(history, name="doubt", output_tokens=64)


@llm_events.response.add_listener
def print_slow_ones(user, answer, **kwargs):
    """Say which requests waited long for their first token."""
    if answer.record.ttft_ns and answer.record.ttft_ns > 5e9:
        print(f"{answer.record.name}: first token after {answer.record.ttft_ns / 1e9:.1f} s")
