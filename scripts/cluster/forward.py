#!/usr/bin/env python3
"""Leads a port of the machine's loopback into the cluster's network namespace.

    forward.py listen FILE COMMAND...   listens on a free port, writes its number to FILE, runs COMMAND
    forward.py serve PORT               for a process of COMMAND: accepts there, connects to PORT of its own loopback

A socket stays in the network namespace that it was made in. COMMAND inherits it, so the port goes with the last of its processes.
"""

import asyncio
import os
import socket
import sys

VARIABLE = "CLUSTER_LISTENER"
CHUNK_BYTES = 1 << 18
CONNECT_TIMEOUT_S = 10


def listen(file, command):
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    listener.set_inheritable(True)
    with open(file, "w", encoding="ascii") as output:
        output.write(f"{listener.getsockname()[1]}\n")
    os.environ[VARIABLE] = str(listener.fileno())
    os.environ["CLUSTER_PORT"] = str(listener.getsockname()[1])
    os.execvp(command[0], command)


async def copy(reader, writer):
    try:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        # The other direction sees the same end.
        writer.close()


async def serve(port):
    async def connect(reader, writer):
        try:
            there = asyncio.open_connection("127.0.0.1", port, limit=CHUNK_BYTES)
            inner_reader, inner_writer = await asyncio.wait_for(there, CONNECT_TIMEOUT_S)
        except (OSError, asyncio.TimeoutError):
            # As if nobody listened: the API server is not up.
            writer.transport.abort()
            return
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))
        for end in (writer, inner_writer):
            end.close()

    listener = socket.socket(fileno=int(os.environ[VARIABLE]))
    server = await asyncio.start_server(connect, sock=listener, limit=CHUNK_BYTES)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "listen":
        listen(sys.argv[2], sys.argv[3:])
    else:
        asyncio.run(serve(int(sys.argv[2])))
