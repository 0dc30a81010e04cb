from glob import glob

from setuptools import setup

PACKAGE = "tautline_ros"
PROGRAMS = "camera", "machine", "sim_robot", "stop", "topic_settings", "topics"

setup(
    name=PACKAGE,
    version="0.1.0",
    packages=[PACKAGE],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/launch", glob("launch/*.launch.py")),
        (f"share/{PACKAGE}/config", glob("config/*.yaml")),
    ],
    install_requires=["numpy", "pyyaml", "tautline"],
    license="MIT OR Apache-2.0",
    entry_points={
        "console_scripts": [f"tautline_{name} = {PACKAGE}.{name}:main" for name in PROGRAMS],
    },
)
