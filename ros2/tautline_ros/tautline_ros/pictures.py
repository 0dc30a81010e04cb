"""Pictures of ROS messages in the formats that the vehicle's camera takes."""

# Formats by encoding.
FORMATS = {
    "rgb8": "rgb",
    "bgr8": "bgr",
    "rgba8": "rgba",
    "bgra8": "bgra",
    "mono8": "grey",
    "8UC1": "grey",
    "8UC3": "bgr",
    "8UC4": "bgra",
    "yuv422": "uyvy",
    "uyvy": "uyvy",
    "yuv422_yuy2": "yuyv",
    "yuyv": "yuyv",
}


def options(message):
    """Returns the arguments of `tautline.Camera.send` for an Image or a CompressedImage.

    Raises ValueError for an encoding that the vehicle does not take.
    """
    if not hasattr(message, "encoding"):
        return {"format": "jpeg"}
    if message.encoding not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValueError(f"encoding {message.encoding!r}: {known} and JPEG are possible")
    size = message.width, message.height
    return {"format": FORMATS[message.encoding], "size": size, "stride": message.step}
