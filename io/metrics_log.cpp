#include "io/metrics_log.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/json.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::io {
namespace {

Json json_or_null(std::optional<double> const& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

Json json_or_null(std::optional<std::int64_t> const& value) {
  if (!value) return nullptr;
  return *value;
}

std::string line_of(Json const& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Step of a row or event; empty if the line is not one of ours.
std::optional<std::int64_t> step_of(std::string_view line) {
  Json const json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  auto const step = json.find("step");
  if (step == json.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<std::int64_t>();
}

/// Length of the file without the rows beyond `step`, which are its last ones, and without a line
/// that has no end. Reads from the end of the file, block by block.
std::int64_t kept_bytes(int descriptor, std::int64_t file_bytes, std::int64_t step) {
  constexpr std::int64_t block_bytes = 65536;
  std::string tail;  // the file from `begin` to the end of what may be kept
  std::int64_t begin = file_bytes;
  for (;;) {
    std::size_t const end = tail.rfind('\n');
    std::size_t const previous =
        end == std::string::npos || end == 0 ? std::string::npos : tail.rfind('\n', end - 1);
    if (end != std::string::npos && (previous != std::string::npos || begin == 0)) {
      std::size_t const first = previous == std::string::npos ? 0 : previous + 1;
      auto const found = step_of(std::string_view{tail}.substr(first, end - first));
      if (found && *found <= step) return begin + static_cast<std::int64_t>(end) + 1;
      tail.resize(first);
      continue;
    }
    if (begin == 0) return 0;
    std::int64_t const count = std::min(begin, block_bytes);
    std::string block(static_cast<std::size_t>(count), '\0');
    begin -= count;
    std::int64_t const got = read_at(descriptor, std::as_writable_bytes(std::span{block}), begin);
    if (got != count) return begin + count;
    tail.insert(0, block);
  }
}

}  // namespace

MetricsLog::MetricsLog(RunFolder const& folder, std::int64_t step)
    : folder_{&folder}, path_{folder.metrics_file()} {
  folder.expect_owned();
  file_ = FileDescriptor{::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
  if (!file_) throw_write_error(path_, errno);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) throw_write_error(path_, errno);
  if (status.st_size == 0) return;
  std::int64_t const kept = kept_bytes(file_.get(), status.st_size, step);
  if (kept < status.st_size && ::ftruncate(file_.get(), kept) != 0) throw_write_error(path_, errno);
  write_event("resume", step);
}

void MetricsLog::write(MetricsRow const& row) {
  Json json;
  json["step"] = row.step;
  json["tokens"] = row.tokens;
  json["samples"] = row.samples;
  json["loss"] = json_or_null(row.loss);
  json["val_loss"] = json_or_null(row.val_loss);
  json["lr"] = json_or_null(row.lr);
  json["grad_norm"] = json_or_null(row.grad_norm);
  json["tokens_per_s"] = json_or_null(row.tokens_per_s);
  json["step_ms"] = json_or_null(row.step_ms);
  json["mfu"] = json_or_null(row.mfu);
  json["mem_peak"] = json_or_null(row.mem_peak);
  json["host_mem_peak"] = json_or_null(row.host_mem_peak);
  json["skipped"] = json_or_null(row.skipped);
  json["nan"] = json_or_null(row.nan);
  json["imbalance"] = json_or_null(row.imbalance);
  json["exposed_comm_ms"] = json_or_null(row.exposed_comm_ms);
  json["bubble_pct"] = json_or_null(row.bubble_pct);
  json["data_wait_ms"] = json_or_null(row.data_wait_ms);
  Json per_type = Json::object();
  for (auto const& [name, type] : row.per_type) {
    per_type[name] = {{"stage_ms", json_or_null(type.stage_ms)},
                      {"mfu", json_or_null(type.mfu)},
                      {"mem_peak", json_or_null(type.mem_peak)}};
  }
  json["per_type"] = std::move(per_type);
  append(line_of(json));
}

void MetricsLog::write_event(std::string const& name, std::int64_t step, std::string const& text) {
  Json json;
  json["event"] = name;
  json["step"] = step;
  json["time"] = utc_time_now();
  if (!text.empty()) json["text"] = text;
  append(line_of(json));
}

void MetricsLog::append(std::string const& line) {
  folder_->expect_owned();
  // One call for the whole line, so that a kill leaves all of it or nothing.
  ssize_t written = -1;
  do {
    written = ::write(file_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  bool const is_whole = written == static_cast<ssize_t>(line.size());
  if (!is_whole && !is_failing_) {
    MOTLEY_LOG(warning) << "metrics " << path_ << " cannot be written ("
                        << system_error_text(written < 0 ? errno : ENOSPC)
                        << "): rows are lost until there is space again";
  }
  is_failing_ = !is_whole;
  if (written <= 0 || is_whole) return;
  struct stat status {};
  if (::fstat(file_.get(), &status) == 0) {  // take the half line back
    static_cast<void>(::ftruncate(file_.get(), status.st_size - written));
  }
}

}  // namespace motley::io
