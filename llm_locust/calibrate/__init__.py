"""`llm-locust calibrate`: how much one worker of this machine times rightly. The command is in ``command``."""
