@0xb7f0d3c1a45e9d21;
# The paper's lidar message.
struct LidarCloud {
  info @0 :Info;
  points @1 :List(Point);
  struct Info {
    kind @0 :UInt64;
    timestamp @1 :UInt64;
    guid @2 :UInt64;
  }
  struct Point {
    x @0 :Float32;
    y @1 :Float32;
    z @2 :Float32;
    intensity @3 :UInt8;
  }
}
