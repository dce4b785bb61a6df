"""What is read out of finished runs, by their files alone. Knows no Locust and no sockets."""
