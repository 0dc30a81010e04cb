#!/usr/bin/env python3
"""A network between two TUN devices that loses some packets, and lets no UDP pass until a line on stdin says so.

    network.py FIRST SECOND --loss 0.02 --delay-ms 20 --mbps 10 [--seed 1]

Makes both devices, says "ready", and carries IP packets between them: a rate and a queue of a tenth of a second each
way, then loss, then delay. A line "pass" or "block" on its standard input lets UDP pass or not; it ends with that
input, and then says what became of packets: NAME=COUNT, a line each.
"""

import argparse
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN_WITHOUT_INFO = 0x0001 | 0x1000
UDP = 17
QUEUE_SECONDS = 0.1


def tun(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN_WITHOUT_INFO))
    return device


def protocol(packet):
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        return packet[9]
    if version == 6 and len(packet) >= 40:
        return packet[6]
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("devices", nargs=2)
    parser.add_argument("--loss", type=float, default=0.02)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    parser.add_argument("--mbps", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    ends = [tun(name) for name in settings.devices]
    print("ready", flush=True)
    chance = random.Random(settings.seed)
    counts = {"udp": 0, "lost": 0, "queue": 0, "carried": 0}
    free_at, due, number = [0.0, 0.0], [], 0
    passes_udp = False
    while True:
        wait = max(0.0, due[0][0] - time.monotonic()) if due else 1.0
        # The kernel's timer has milliseconds; wait actively for packets that are due sooner.
        readable, _, _ = select.select([*ends, sys.stdin], [], [], 0.0 if wait < 0.0005 else wait)
        if sys.stdin in readable:
            told = os.read(sys.stdin.fileno(), 64)
            if not told:
                break
            passes_udp = told.strip() == b"pass"
        now = time.monotonic()
        for way, end in enumerate(ends):
            for _ in range(64):
                try:
                    packet = os.read(end, 2048)
                except OSError:
                    # No packet, or a device that is not up yet.
                    break
                if protocol(packet) == UDP and not passes_udp:
                    counts["udp"] += 1
                    continue
                begins = max(now, free_at[way])
                if begins - now > QUEUE_SECONDS:
                    counts["queue"] += 1
                    continue
                free_at[way] = begins + len(packet) * 8 / (settings.mbps * 1e6)
                if chance.random() < settings.loss:
                    counts["lost"] += 1
                    continue
                number += 1
                heapq.heappush(due, (free_at[way] + settings.delay_ms / 1e3, number, 1 - way, packet))
        while due and due[0][0] <= time.monotonic():
            _, _, way, packet = heapq.heappop(due)
            try:
                os.write(ends[way], packet)
                counts["carried"] += 1
            except OSError:
                counts["queue"] += 1
    for name, count in counts.items():
        print(f"{name}={count}")


if __name__ == "__main__":
    main()
