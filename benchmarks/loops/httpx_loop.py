"""The least that a client on httpx does: read what came, look at the clock, find the tokens. No JSON, no records."""

import asyncio

import httpx
from common import Times, options


async def stream(client, url, requests, times):
    """Ask once unmeasured, then `requests` times."""
    for number in range(requests + 1):
        start, last = times.start(number > 0), 0
        async with client.stream("POST", url, json=times.body) as response:
            async for data in response.aiter_raw():
                last = times.read(data, start, last, number > 0)


async def main():
    """Run all streams at once."""
    given = options()
    times = Times(given)
    url = given.url + "/v1/chat/completions"
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:
        await asyncio.gather(*(stream(client, url, given.requests, times) for _ in range(given.streams)))
    times.tell()


asyncio.run(main())
