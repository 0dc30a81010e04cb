// Colfer, with the C code of its compiler (schemas/lidar.colf).
#include "harness.hpp"

#include <cstdlib>
#include <vector>

#include "colfer/Colfer.h"

namespace {

class Colfer {
public:
  Colfer() {
    // The default limits of 64 Ki points and 16 MiB are below the largest scans.
    colfer_list_max = 1 << 20;
    colfer_size_max = 32 << 20;
  }
  ~Colfer() { forget(); }

  void fill(const harness::Info &info, const harness::Point *points, size_t count) {
    outgoing_info_ = {info.kind, info.timestamp, info.guid};
    outgoing_points_.resize(count);
    for (size_t at = 0; at < count; ++at) {
      const harness::Point &point = points[at];
      outgoing_points_[at] = {point.position[0], point.position[1], point.position[2], point.intensity};
    }
  }

  const uint8_t *write(size_t *length) {
    lidar_cloud cloud = {&outgoing_info_, {outgoing_points_.data(), outgoing_points_.size()}};
    buffer_.resize(lidar_cloud_marshal_len(&cloud));
    *length = lidar_cloud_marshal(&cloud, buffer_.data());
    return buffer_.data();
  }

  bool parse(const uint8_t *bytes, size_t length) {
    forget();
    return lidar_cloud_unmarshal(&incoming_, bytes, length) != 0;
  }

  harness::Info info() const {
    const lidar_info *info = incoming_.info;
    if (!info) return {};
    return {info->kind, info->timestamp, info->guid};
  }
  size_t count() const { return incoming_.points.list ? incoming_.points.len : 0; }
  harness::Point point(size_t at) const {
    const lidar_point &point = incoming_.points.list[at];
    return {{point.x, point.y, point.z}, point.intensity};
  }

private:
  // The caller must free the structures that it allocates on reading.
  void forget() {
    std::free(incoming_.info);
    std::free(incoming_.points.list);
    incoming_ = {};
  }

  lidar_info outgoing_info_ = {};
  std::vector<lidar_point> outgoing_points_;
  std::vector<uint8_t> buffer_;
  lidar_cloud incoming_ = {};
};

} // namespace

extern "C" const harness::Calls *colfer_calls() { return harness::calls<Colfer>(); }
