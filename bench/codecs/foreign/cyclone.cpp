// CDR by Cyclone DDS, with the code of idlc (schemas/lidar.idl), as a substitute for the paper's commercial DDS.
#include "harness.hpp"

#include <vector>

extern "C" {
#include "dds/dds.h"
#include "dds/ddsi/ddsi_cdrstream.h"
#include "lidar.h"
}

namespace {

class Cyclone {
public:
  Cyclone() { dds_ostream_init(&out_, 0, XCDR); }
  ~Cyclone() {
    dds_ostream_fini(&out_);
    dds_stream_free_sample(&incoming_, lidar_Cloud_desc.m_ops);
  }

  void fill(const harness::Info &info, const harness::Point *points, size_t count) {
    outgoing_.resize(count);
    for (size_t at = 0; at < count; ++at) {
      const auto &position = points[at].position;
      outgoing_[at] = {{position[0], position[1], position[2]}, points[at].intensity};
    }
    info_ = {info.kind, info.timestamp, info.guid};
  }

  const uint8_t *write(size_t *length) {
    lidar_Cloud cloud = {};
    cloud.info = info_;
    cloud.points._length = cloud.points._maximum = uint32_t(outgoing_.size());
    cloud.points._buffer = outgoing_.data();
    out_.m_index = 0;
    dds_stream_write(&out_, reinterpret_cast<const char *>(&cloud), lidar_Cloud_desc.m_ops);
    *length = out_.m_index;
    return out_.m_buffer;
  }

  // As for data from a network: copied into its own memory, validated there, then read.
  bool parse(const uint8_t *bytes, size_t length) {
    received_.assign(bytes, bytes + length);
    incoming_.points._length = 0;
    uint32_t offset = 0;
    const auto size = uint32_t(length);
    auto *data = reinterpret_cast<char *>(received_.data());
    const uint32_t *ops = lidar_Cloud_desc.m_ops;
    if (!dds_stream_normalize_data(data, &offset, size, false, XCDR, ops)) return false;
    dds_istream_t in;
    dds_istream_init(&in, size, data, XCDR);
    dds_stream_read(&in, reinterpret_cast<char *>(&incoming_), ops);
    return true;
  }

  harness::Info info() const {
    return {incoming_.info.kind, incoming_.info.timestamp, incoming_.info.guid};
  }
  size_t count() const { return incoming_.points._length; }
  harness::Point point(size_t at) const {
    const lidar_Point &point = incoming_.points._buffer[at];
    return {{point.position[0], point.position[1], point.position[2]}, point.intensity};
  }

private:
  /// The first version of the encoding, used for final types.
  static constexpr uint32_t XCDR = 1;
  lidar_Info info_ = {};
  std::vector<lidar_Point> outgoing_;
  dds_ostream_t out_;
  std::vector<uint8_t> received_;
  lidar_Cloud incoming_ = {};
};

} // namespace

extern "C" const harness::Calls *cyclone_calls() { return harness::calls<Cyclone>(); }
