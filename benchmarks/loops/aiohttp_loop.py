"""The least that a client on aiohttp does: read what came, look at the clock, find the tokens. No JSON, no records."""

import asyncio

import aiohttp
from common import Times, options


async def stream(session, url, requests, times):
    """Ask once unmeasured, then `requests` times."""
    for number in range(requests + 1):
        start, last = times.start(number > 0), 0
        async with session.post(url, json=times.body) as response:
            async for data in response.content.iter_any():
                last = times.read(data, start, last, number > 0)


async def main():
    """Run all streams at once."""
    given = options()
    times = Times(given)
    url = given.url + "/v1/chat/completions"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as session:
        await asyncio.gather(*(stream(session, url, given.requests, times) for _ in range(given.streams)))
    times.tell()


asyncio.run(main())
