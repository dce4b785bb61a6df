"""A dataset of your own: anything that gives a prompt for an index.

    locust -f custom_dataset.py --host http://sglang:30000 --llm-model deepseek-r1 -u 8 -t 5m --headless

The index counts over all users and workers, so no two requests get the same prompt until `size` is used up; what comes
again is counted as repeated. To give it a name for `--llm-prompts`, put it into a package with an entry point:

    [project.entry-points."llm_locust.prompts"]
    tickets = "my_package:open_tickets"      # (path, *, keep, lenient) -> an object like this one
"""

from llm_locust import LLMUser, PromptRequest

PRODUCTS = ("router", "invoice", "login", "printer", "contract")
FAULTS = ("does not work", "came twice", "is too slow", "shows an error", "was changed without notice")


class SupportTickets:
    """Every product with every fault, once."""

    size = len(PRODUCTS) * len(FAULTS)

    def prompt(self, index: int) -> PromptRequest:
        """Make the prompt of one request."""
        product, fault = divmod(index % self.size, len(FAULTS))
        return PromptRequest(text=f"The {PRODUCTS[product]} {FAULTS[fault]}. Answer the customer.", output_tokens=64)


class Customer(LLMUser):
    """Sends the tickets in turn."""

    prompts = SupportTickets()
