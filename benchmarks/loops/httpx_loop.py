"""A bare loop on httpx: lines, the clock, the JSON of each event; with --raw not even that. No records, no checks."""

import argparse
import asyncio

import httpx
from common import HEADERS, Times, options


async def stream(client: httpx.AsyncClient, url: str, given: argparse.Namespace, times: Times) -> None:
    """Ask once unmeasured, then `given.requests` times."""
    for number in range(given.requests + 1):
        start, last = times.start(number > 0), 0
        async with client.stream("POST", url, json=times.body, headers=HEADERS) as response:
            if given.raw:
                async for data in response.aiter_raw():
                    last = times.read(data, start, last, number > 0)
            else:
                async for line in response.aiter_lines():
                    last = times.line(line.encode(), start, last, number > 0)


async def main() -> None:
    """Run all streams at once."""
    given = options()
    times = Times(given)
    url = given.url + "/v1/chat/completions"
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:
        await asyncio.gather(*(stream(client, url, given, times) for _ in range(given.streams)))
    times.tell()


asyncio.run(main())
