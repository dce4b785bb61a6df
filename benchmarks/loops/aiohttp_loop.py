"""A bare loop on aiohttp: lines, the clock, the JSON of each event; with --raw not even that. No records, no checks."""

import argparse
import asyncio

import aiohttp
from common import HEADERS, Times, options


async def stream(session: aiohttp.ClientSession, url: str, given: argparse.Namespace, times: Times) -> None:
    """Ask once unmeasured, then `given.requests` times."""
    take = times.read if given.raw else times.line
    for number in range(given.requests + 1):
        start, last = times.start(number > 0), 0
        async with session.post(url, json=times.body, headers=HEADERS) as response:
            async for piece in response.content.iter_any() if given.raw else response.content:
                last = take(piece, start, last, number > 0)


async def main() -> None:
    """Run all streams at once."""
    given = options()
    times = Times(given)
    url = given.url + "/v1/chat/completions"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as session:
        await asyncio.gather(*(stream(session, url, given, times) for _ in range(given.streams)))
    times.tell()


asyncio.run(main())
