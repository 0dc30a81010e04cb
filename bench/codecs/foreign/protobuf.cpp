// Protocol Buffers by Google's C++ library (schemas/lidar.proto), with reused messages as its guide advises.
#include "harness.hpp"

#include <climits>
#include <string>

#include "lidar.pb.h"

namespace {

class Protobuf {
public:
  void fill(const harness::Info &info, const harness::Point *points, size_t count) {
    outgoing_.Clear();
    ::Info *head = outgoing_.mutable_info();
    head->set_kind(info.kind);
    head->set_timestamp(info.timestamp);
    head->set_guid(info.guid);
    for (size_t at = 0; at < count; ++at) {
      ::Point *point = outgoing_.add_points();
      point->set_x(points[at].position[0]);
      point->set_y(points[at].position[1]);
      point->set_z(points[at].position[2]);
      point->set_intensity(points[at].intensity);
    }
  }

  const uint8_t *write(size_t *length) {
    outgoing_.SerializeToString(&buffer_);
    *length = buffer_.size();
    return reinterpret_cast<const uint8_t *>(buffer_.data());
  }

  bool parse(const uint8_t *bytes, size_t length) {
    return length <= INT_MAX && incoming_.ParseFromArray(bytes, int(length));
  }

  harness::Info info() const {
    const ::Info &info = incoming_.info();
    return {info.kind(), info.timestamp(), info.guid()};
  }
  size_t count() const { return size_t(incoming_.points_size()); }
  harness::Point point(size_t at) const {
    const ::Point &point = incoming_.points(int(at));
    return {{point.x(), point.y(), point.z()}, uint8_t(point.intensity())};
  }

private:
  ::Cloud outgoing_, incoming_;
  std::string buffer_;
};

} // namespace

extern "C" const harness::Calls *protobuf_calls() { return harness::calls<Protobuf>(); }
