"""Pictures of ROS messages in the forms that the vehicle's camera takes."""

import numpy

# Formats by encoding, with the bytes of a pixel; of those with alpha, the fourth byte is left out.
FORMATS = {
    "rgb8": ("rgb", 3),
    "bgr8": ("bgr", 3),
    "rgba8": ("rgb", 4),
    "bgra8": ("bgr", 4),
    "mono8": ("grey", 1),
    "8UC1": ("grey", 1),
    "8UC3": ("bgr", 3),
    "yuv422": ("uyvy", 2),
    "uyvy": ("uyvy", 2),
    "yuv422_yuy2": ("yuyv", 2),
    "yuyv": ("yuyv", 2),
}
# Markers of a JPEG's frame, which has the size: all SOF but DHT, JPG and DAC.
SIZES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Unusable(ValueError):
    """A picture that cannot be shown, with the reason."""


def raw(message):
    """Returns pixels (rows, columns, bytes), format and size of an Image.

    An odd last row or column is left out. Raises [`Unusable`].
    """
    if message.encoding not in FORMATS:
        known = ", ".join(FORMATS)
        raise Unusable(f"encoding {message.encoding!r}: {known} and JPEG are possible")
    kind, depth = FORMATS[message.encoding]
    width, height, step = message.width, message.height, message.step
    if step < width * depth or len(message.data) < step * height or min(width, height) < 2:
        raise Unusable(f"{len(message.data)} bytes, {step} a row: too few for {width}x{height}")
    rows = numpy.frombuffer(message.data, numpy.uint8, step * height).reshape(height, step)
    width, height = width & ~1, height & ~1
    pixels = rows[:height, : width * depth].reshape(height, width, depth)
    return numpy.ascontiguousarray(pixels[:, :, :3]), kind, (width, height)


def jpeg_size(data):
    """Returns width and height of a JPEG. Raises [`Unusable`]."""
    if bytes(data[:2]) != b"\xff\xd8":
        raise Unusable("a compressed picture that is no JPEG")
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        # Filling bytes, and markers without a length.
        if marker == 0xFF:
            place += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD7:
            place += 2
        elif marker in SIZES:
            numbers = bytes(data[place + 5 : place + 9])
            return int.from_bytes(numbers[2:], "big"), int.from_bytes(numbers[:2], "big")
        else:
            place += 2 + int.from_bytes(bytes(data[place + 2 : place + 4]), "big")
    raise Unusable("a JPEG without a size")
