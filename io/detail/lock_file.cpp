#include "io/detail/lock_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/json.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

using namespace std::chrono_literals;

// One write of a fixed size replaces the record, so that no truncation can tear it.
constexpr std::size_t record_bytes = 1024;
// Everybody holds the flock for a few system calls; who does not let go was stopped or hangs.
constexpr auto flock_patience = 10s;

std::string lock_text(LockRecord const& record) {
  Json json;
  json["epoch"] = record.epoch;
  json["host"] = record.host;
  json["pid"] = record.pid;
  json["process_start"] = record.process_start;
  json["process_space"] = record.process_space;
  json["job"] = record.job;
  json["job_restart"] = record.job_restart;
  json["token"] = record.token;
  json["is_released"] = record.is_released;
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  MOTLEY_VALIDATE(bug,
                  text.size() < record_bytes,
                  "the lock record has " << text.size() << " bytes (" << record_bytes
                                         << " are reserved); shorten the name of the host");
  text.resize(record_bytes - 1, ' ');
  text.push_back('\n');
  return text;
}

/// First line of a small system file; empty if there is none.
std::string first_line(char const* file) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const stream{std::fopen(file, "re"),
                                                               &std::fclose};
  std::array<char, 4096> buffer{};
  if (!stream || std::fgets(buffer.data(), buffer.size(), stream.get()) == nullptr) return {};
  std::string line{buffer.data()};
  if (line.ends_with('\n')) line.pop_back();
  return line;
}

struct ProcessState {
  char state = 'X';
  std::string start;
};

/// Empty if there is no such process.
std::optional<ProcessState> find_process(std::int64_t pid) {
  std::string const line = first_line(("/proc/" + std::to_string(pid) + "/stat").c_str());
  // proc(5): "pid (name) state …", the start time is field 22; the name may hold blanks and ')'.
  std::size_t position = line.rfind(')');
  if (position == std::string::npos || position + 2 >= line.size()) return std::nullopt;
  position += 2;
  ProcessState process{line[position], {}};
  for (int field = 3; field < 22; ++field) {
    position = line.find(' ', position);
    if (position == std::string::npos) return std::nullopt;
    ++position;
  }
  process.start = line.substr(position, line.find(' ', position) - position);
  return process;
}

std::string process_space() {
  std::array<char, 128> name{};
  ssize_t const length = ::readlink("/proc/self/ns/pid", name.data(), name.size() - 1);
  return first_line("/proc/sys/kernel/random/boot_id") + " " +
         std::string{name.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

std::string environment(char const* name) {
  char const* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_process_gone(LockRecord const& owner) {
  auto const process = find_process(owner.pid);
  if (!process || process->start != owner.process_start) return true;
  return process->state == 'Z' || process->state == 'X';  // killed, its parent has not noticed
}

/// What `squeue` says of a job: state names, an error text, or nothing. Empty: could not be asked.
std::optional<std::string> ask_slurm(std::string const& job) {
  if (job.empty() || job.find_first_not_of("0123456789_") != std::string::npos) return std::nullopt;
  std::string const command = "timeout 10 squeue -h -j " + job + " -o %T 2>&1; echo \" rc=$?\"";
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const pipe{::popen(command.c_str(), "re"),
                                                             &::pclose};
  if (!pipe) return std::nullopt;
  std::string answer;
  std::array<char, 512> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) answer += buffer.data();
  if (answer.find("Invalid job id") != std::string::npos) return "";
  std::size_t const end = answer.rfind(" rc=0");
  if (end == std::string::npos) return std::nullopt;
  return answer.substr(0, end);
}

bool is_job_over(std::string const& job) {
  auto const states = ask_slurm(job);
  if (!states) return false;
  // A requeued job waits as PENDING under its old number; its processes are gone.
  return states->find_first_not_of(" \n") == std::string::npos || states->starts_with("PENDING");
}

}  // namespace

LockFile::LockFile(std::filesystem::path const& file)
    : path_{file}, file_{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)} {
  if (!file_ && (errno == ENOSPC || errno == EDQUOT)) throw_write_error(file, errno);
  MOTLEY_VALIDATE(usage,
                  static_cast<bool>(file_),
                  "lock " << file << " cannot be opened (" << system_error_text(errno)
                          << "); choose a run.dir that you may write");
  auto const deadline = std::chrono::steady_clock::now() + flock_patience;
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) {
      is_exclusive_ = false;
      return;
    }
    MOTLEY_VALIDATE(usage,
                    errno == EWOULDBLOCK || errno == EINTR,
                    "lock " << file << " cannot be locked (" << system_error_text(errno)
                            << "); choose a run.dir on another file system");
    MOTLEY_VALIDATE(usage,
                    std::chrono::steady_clock::now() < deadline,
                    "lock " << file << " stays locked for " << flock_patience.count()
                            << " s (a process that uses the run folder is stopped or hangs); end "
                               "it and start again");
    std::this_thread::sleep_for(1ms);
  }
}

std::optional<LockRecord> LockFile::read() const {
  std::array<std::byte, record_bytes> bytes{};
  std::int64_t const count = read_at(file_.get(), bytes, 0);
  MOTLEY_VALIDATE(usage,
                  count >= 0,
                  "lock " << path_ << " cannot be read ("
                          << system_error_text(static_cast<int>(-count))
                          << "); choose a run.dir that you may read and write");
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes as text
  return parse_lock({reinterpret_cast<char const*>(bytes.data()), static_cast<std::size_t>(count)});
}

void LockFile::write(LockRecord const& record) const {
  std::string const text = lock_text(record);
  write_at(file_.get(), std::as_bytes(std::span{text}), 0, path_);
  sync_file(file_.get(), path_);
}

void LockFile::beat() const {
  // Both times "now" by the clock of the file server. A missed beat is no harm.
  static_cast<void>(::futimens(file_.get(), nullptr));
}

std::int64_t LockFile::last_beat_ns() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return 0;
  return static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::optional<LockRecord> parse_lock(std::string_view text) {
  try {
    Json const json = Json::parse(text);
    LockRecord record;
    json.at("epoch").get_to(record.epoch);
    json.at("host").get_to(record.host);
    json.at("pid").get_to(record.pid);
    json.at("process_start").get_to(record.process_start);
    json.at("process_space").get_to(record.process_space);
    json.at("job").get_to(record.job);
    json.at("job_restart").get_to(record.job_restart);
    json.at("token").get_to(record.token);
    json.at("is_released").get_to(record.is_released);
    return record;
  } catch (JsonError const&) {
    return std::nullopt;
  }
}

LockRecord own_record() {
  LockRecord record;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) record.host = host.data();
  record.pid = ::getpid();
  if (auto const self = find_process(record.pid)) record.process_start = self->start;
  record.process_space = process_space();
  record.job = environment("SLURM_JOB_ID");
  record.job_restart = std::strtoll(environment("SLURM_RESTART_COUNT").c_str(), nullptr, 10);
  std::random_device random;
  std::array<char, 33> token{};
  std::snprintf(
      token.data(), token.size(), "%08x%08x%08x%08x", random(), random(), random(), random());
  record.token = token.data();
  return record;
}

bool is_surely_gone(LockRecord const& owner, LockRecord const& self) {
  if (owner.process_space == self.process_space && is_process_gone(owner)) return true;
  if (owner.job.empty()) return false;
  if (owner.job == self.job) return owner.job_restart < self.job_restart;
  return is_job_over(owner.job);
}

std::int64_t file_system_now_ns(std::filesystem::path const& folder) {
  std::filesystem::path const probe = folder / ("clock." + own_record().token + ".tmp");
  struct stat status {};
  bool is_known = false;
  if (FileDescriptor const file{::open(probe.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
      file) {
    is_known = ::fstat(file.get(), &status) == 0;
    ::unlink(probe.c_str());
  }
  if (!is_known) ::clock_gettime(CLOCK_REALTIME, &status.st_mtim);  // a full disk: our own clock
  return static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace motley::io::detail
