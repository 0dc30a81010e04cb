"""Age of the newest message of a topic."""

import math

# Drift of two clocks, seconds per second; and seconds of silence after which the sender may be
# another, with another clock.
DRIFT, ANEW = 0.0002, 1.0
# Early messages that agree within AGREE seconds, in a row, set a new minimum of the delay: a single
# wrong stamp does not make all later ones late.
AGREE, EARLY_COUNT = 0.001, 3


class Freshness:
    """Age of the newest message, by its stamp: how late it is compared with the fastest one.

    The sender's clock may differ by any constant. A message whose stamp is not after the last one
    is no news. Without stamps the time of arrival counts.
    """

    def __init__(self, by_stamps=True):
        self.by_stamps = by_stamps
        self.stamp, self.arrived = -math.inf, -math.inf
        self.least, self.late, self.early = math.inf, 0.0, []

    def take(self, stamp, now):
        """Takes a message that was stamped at `stamp`, in seconds; returns whether it is news."""
        silence = now - self.arrived
        if self.by_stamps:
            # A restarted sender may have an earlier clock, but a repeated message is never news.
            if stamp == self.stamp or stamp < self.stamp and silence < ANEW:
                return False
            self.stamp = stamp
            self.measure(now - stamp, silence)
        self.arrived = now
        return True

    def measure(self, apart, silence):
        """Updates lateness and minimum with the difference of arrival and stamp."""
        if silence >= ANEW:
            self.least, self.early = apart, []
        self.least += min(silence, ANEW) * DRIFT
        if apart >= self.least - AGREE:
            self.least, self.early = min(self.least, apart), []
        else:
            self.early = [it for it in self.early if abs(it - apart) <= AGREE] + [apart]
            if len(self.early) >= EARLY_COUNT:
                self.least, self.early = max(self.early), []
        self.late = max(0.0, apart - self.least)

    def age(self, now):
        """Returns the age in seconds of the newest news; infinite before the first."""
        return now - self.arrived + self.late
