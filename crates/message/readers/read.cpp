// Reads Tautline messages in C++: `read FOLDER` prints the contents of its files.
//
// Build it with FlatBuffers' headers, of flatc's version, from the repository's root:
//   for schema in crates/message/schemas/*.fbs; do flatc --cpp --scoped-enums -o generated $schema; done
//   g++ -std=c++17 -I generated crates/message/readers/read.cpp -o read
// The verifier checks every message before any field is read.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "command_generated.h"
#include "point_cloud_generated.h"
#include "snapshot_generated.h"
#include "telemetry_generated.h"

static std::vector<uint8_t> bytes_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  const std::string folder = std::string(arguments[1]) + "/";

  const auto command = bytes_of(folder + "command.bin");
  flatbuffers::Verifier of_command(command.data(), command.size());
  if (!tautline::VerifyCommandBuffer(of_command)) return 1;
  const auto *controls = tautline::GetCommand(command.data())->controls();
  std::printf("command %llu %.9g %d\n", static_cast<unsigned long long>(controls->sequence()),
              controls->steering(), controls->emergency_stop());
  if (const auto *twist = tautline::GetCommand(command.data())->twist())
    std::printf("twist %.9g %.9g %.9g\n", twist->forward_mps(), twist->sideways_mps(), twist->yaw_rate());

  const auto told = bytes_of(folder + "telemetry.bin");
  flatbuffers::Verifier of_told(told.data(), told.size());
  if (!tautline::VerifyTelemetryBuffer(of_told)) return 1;
  const auto *telemetry = tautline::GetTelemetry(told.data());
  std::printf("telemetry %llu %u %s\n", static_cast<unsigned long long>(telemetry->sequence()),
              telemetry->status()->size(), telemetry->mode_reason()->c_str());

  const auto observed = bytes_of(folder + "snapshot.bin");
  flatbuffers::Verifier of_observed(observed.data(), observed.size());
  if (!tautline::VerifySnapshotBuffer(of_observed)) return 1;
  for (const auto *value : *tautline::GetSnapshot(observed.data())->process()->values())
    std::printf("value %s %.9g %s\n", value->name()->c_str(), value->number(), value->unit()->c_str());

  const auto bytes = bytes_of(folder + "cloud.bin");
  flatbuffers::Verifier of_cloud(bytes.data(), bytes.size());
  if (!foxglove::VerifyPointCloudBuffer(of_cloud)) return 1;
  const auto *cloud = foxglove::GetPointCloud(bytes.data());
  const auto *data = cloud->data();
  const uint32_t stride = cloud->point_stride();
  if (!data || stride < 16 || data->size() % stride != 0) return 1;
  double total = 0;
  for (uint32_t at = 0; at < data->size(); at += stride) {
    float numbers[4];
    std::memcpy(numbers, data->data() + at, sizeof numbers);
    for (float number : numbers) total += number;
  }
  std::printf("cloud %u %.9g\n", data->size() / stride, total);
}
