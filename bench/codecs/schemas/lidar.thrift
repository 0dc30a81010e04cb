// The paper's lidar message. Thrift has no float and no unsigned numbers.
struct Info {
  1: required i64 kind;
  2: required i64 timestamp;
  3: required i64 guid;
}

struct Point {
  1: required double x;
  2: required double y;
  3: required double z;
  4: required i8 intensity;
}

struct Cloud {
  1: required Info info;
  2: required list<Point> points;
}
