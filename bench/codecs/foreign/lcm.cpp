// LCM, with the C code of lcm-gen (schemas/lidar.lcm).
#include "harness.hpp"

#include <vector>

#include "lidar_cloud_t.h"

namespace {

class Lcm {
public:
  ~Lcm() { lidar_cloud_t_decode_cleanup(&incoming_); }

  void fill(const harness::Info &info, const harness::Point *points, size_t count) {
    outgoing_.resize(count);
    for (size_t at = 0; at < count; ++at) {
      const auto &position = points[at].position;
      outgoing_[at] = {{position[0], position[1], position[2]}, points[at].intensity};
    }
    info_ = {int64_t(info.kind), int64_t(info.timestamp), int64_t(info.guid)};
  }

  const uint8_t *write(size_t *length) {
    const lidar_cloud_t cloud = {info_, int32_t(outgoing_.size()), outgoing_.data()};
    buffer_.resize(size_t(lidar_cloud_t_encoded_size(&cloud)));
    const int written = lidar_cloud_t_encode(buffer_.data(), 0, int(buffer_.size()), &cloud);
    *length = written < 0 ? 0 : size_t(written);
    return buffer_.data();
  }

  bool parse(const uint8_t *bytes, size_t length) {
    lidar_cloud_t_decode_cleanup(&incoming_);
    incoming_ = {};
    const bool read = lidar_cloud_t_decode(bytes, 0, int(length), &incoming_) >= 0;
    // LCM accepts a negative count.
    return read && incoming_.count >= 0;
  }

  harness::Info info() const {
    const lidar_info_t &info = incoming_.info;
    return {uint64_t(info.kind), uint64_t(info.timestamp), uint64_t(info.guid)};
  }
  size_t count() const { return size_t(incoming_.count); }
  harness::Point point(size_t at) const {
    const lidar_point_t &point = incoming_.points[at];
    return {{point.position[0], point.position[1], point.position[2]}, point.intensity};
  }

private:
  lidar_info_t info_ = {};
  std::vector<lidar_point_t> outgoing_;
  std::vector<uint8_t> buffer_;
  lidar_cloud_t incoming_ = {};
};

} // namespace

extern "C" const harness::Calls *lcm_calls() { return harness::calls<Lcm>(); }
