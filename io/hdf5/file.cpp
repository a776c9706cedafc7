#include "io/hdf5/file.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

namespace motley::io::hdf5 {
namespace {

/// Properties of how a file is opened: objects must be closed before it, locks are optional.
PropertyHandle make_access(Subject const& subject, bool is_locked) {
  start_hdf5();
  PropertyHandle access{MOTLEY_HDF5_CHECK(subject, H5Pcreate(H5P_FILE_ACCESS))};
  MOTLEY_HDF5_CHECK(subject, H5Pset_fclose_degree(access.get(), H5F_CLOSE_SEMI));
  MOTLEY_HDF5_CHECK(subject, H5Pset_file_locking(access.get(), is_locked, true));
  return access;
}

/// HDF5's own message for a missing file is hard to find among the entries of its stack.
void expect_regular_file(Subject const& subject) {
  struct stat status {};
  bool const is_there = ::stat(subject.file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (is_there) return;
  throw Error{subject.kind,
              "there is no file \"" + subject.file +
                  "\" (it does not exist, is a folder or cannot be reached); check the path",
              {"stat", __FILE__, __LINE__}};
}

}  // namespace

std::string library_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

File::File(FileHandle handle, Subject subject)
    : subject_{std::move(subject)}, handle_{std::move(handle)} {}

File File::create(std::string const& path, CreateOptions const& options) {
  Subject subject{path, "", options.kind};
  PropertyHandle const access = make_access(subject, true);
  PropertyHandle const creation{MOTLEY_HDF5_CHECK(subject, H5Pcreate(H5P_FILE_CREATE))};
  MOTLEY_HDF5_CHECK(subject, H5Pset_obj_track_times(creation.get(), false));
  MOTLEY_HDF5_CHECK(subject, H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST));
  MOTLEY_HDF5_CHECK(
      subject, H5Pset_alignment(access.get(), options.alignment_bytes, options.alignment_bytes));
  FileHandle handle{MOTLEY_HDF5_CHECK(
      subject, H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()))};
  return {std::move(handle), std::move(subject)};
}

File File::open_to_read(std::string const& path, ErrorKind kind) {
  Subject subject{path, "", kind};
  expect_regular_file(subject);
  PropertyHandle const access = make_access(subject, false);
  FileHandle handle{
      MOTLEY_HDF5_CHECK(subject, H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()))};
  return {std::move(handle), std::move(subject)};
}

File File::open_to_write(std::string const& path, ErrorKind kind) {
  Subject subject{path, "", kind};
  expect_regular_file(subject);
  PropertyHandle const access = make_access(subject, true);
  FileHandle handle{MOTLEY_HDF5_CHECK(subject, H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()))};
  return {std::move(handle), std::move(subject)};
}

bool File::contains(std::string const& path) const {
  Subject const subject = subject_of(path);
  // H5Lexists wants every group on the way to exist.
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    std::string const group = path.substr(0, end);
    if (MOTLEY_HDF5_CHECK(subject, H5Lexists(id(), group.c_str(), H5P_DEFAULT)) == 0) return false;
  }
  return MOTLEY_HDF5_CHECK(subject, H5Lexists(id(), path.c_str(), H5P_DEFAULT)) > 0;
}

Dataset File::create_dataset(std::string const& path, DatasetSpec const& spec) {
  Subject subject = subject_of(path);
  std::vector<hsize_t> const extents(spec.extents.begin(), spec.extents.end());
  std::vector<hsize_t> limits = extents;
  PropertyHandle const creation{MOTLEY_HDF5_CHECK(subject, H5Pcreate(H5P_DATASET_CREATE))};
  hid_t const properties = creation.get();
  MOTLEY_HDF5_CHECK(subject, H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER));
  // Without times the same content gives the same bytes.
  MOTLEY_HDF5_CHECK(subject, H5Pset_obj_track_times(properties, false));
  if (spec.chunk_rows > 0) {
    MOTLEY_EXPECT(!spec.extents.empty());
    limits.front() = H5S_UNLIMITED;
    std::vector<hsize_t> chunk = extents;
    chunk.front() = static_cast<hsize_t>(spec.chunk_rows);
    MOTLEY_HDF5_CHECK(subject,
                      H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data()));
    if (spec.is_shuffled) MOTLEY_HDF5_CHECK(subject, H5Pset_shuffle(properties));
    if (spec.deflate_level > 0) {
      MOTLEY_HDF5_CHECK(subject,
                        H5Pset_deflate(properties, static_cast<unsigned>(spec.deflate_level)));
    }
    if (spec.is_checksummed) MOTLEY_HDF5_CHECK(subject, H5Pset_fletcher32(properties));
  } else {
    MOTLEY_HDF5_CHECK(subject, H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY));
  }
  SpaceHandle const space{MOTLEY_HDF5_CHECK(
      subject,
      extents.empty()
          ? H5Screate(H5S_SCALAR)
          : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), limits.data()))};
  PropertyHandle const links{MOTLEY_HDF5_CHECK(subject, H5Pcreate(H5P_LINK_CREATE))};
  MOTLEY_HDF5_CHECK(subject, H5Pset_create_intermediate_group(links.get(), 1));
  TypeHandle const type = make_type(spec.element, subject);
  DatasetHandle handle{MOTLEY_HDF5_CHECK(
      subject,
      H5Dcreate2(
          id(), path.c_str(), type.get(), space.get(), links.get(), properties, H5P_DEFAULT))};
  return {std::move(handle), std::move(subject)};
}

GroupHandle File::make_group(std::string const& path) {
  Subject const subject = subject_of(path);
  if (contains(path)) {
    return GroupHandle{MOTLEY_HDF5_CHECK(subject, H5Gopen2(id(), path.c_str(), H5P_DEFAULT))};
  }
  PropertyHandle const creation{MOTLEY_HDF5_CHECK(subject, H5Pcreate(H5P_GROUP_CREATE))};
  MOTLEY_HDF5_CHECK(subject, H5Pset_obj_track_times(creation.get(), false));
  return GroupHandle{MOTLEY_HDF5_CHECK(
      subject, H5Gcreate2(id(), path.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT))};
}

Dataset File::open_dataset(std::string const& path) const {
  Subject subject = subject_of(path);
  DatasetHandle handle{MOTLEY_HDF5_CHECK(subject, H5Dopen2(id(), path.c_str(), H5P_DEFAULT))};
  return {std::move(handle), std::move(subject)};
}

Attributes File::attributes() const { return {id(), subject_}; }

std::vector<std::string> File::names(std::string const& group) const {
  Subject const subject = subject_of(group);
  GroupHandle const handle{MOTLEY_HDF5_CHECK(subject, H5Gopen2(id(), group.c_str(), H5P_DEFAULT))};
  H5G_info_t info{};
  MOTLEY_HDF5_CHECK(subject, H5Gget_info(handle.get(), &info));
  std::vector<std::string> result;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    auto const name = [&](char* buffer, std::size_t bytes) {
      return MOTLEY_HDF5_CHECK(
          subject,
          H5Lget_name_by_idx(
              handle.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, buffer, bytes, H5P_DEFAULT));
    };
    std::string text(static_cast<std::size_t>(name(nullptr, 0)), '\0');
    name(text.data(), text.size() + 1);
    result.push_back(std::move(text));
  }
  std::sort(result.begin(), result.end());
  return result;
}

FileDescriptor File::duplicate_descriptor() const {
  FileDescriptor copy{::fcntl(descriptor_of(id(), subject_), F_DUPFD_CLOEXEC, 0)};
  if (copy) return copy;
  throw Error{subject_.kind,
              "file \"" + subject_.file + "\" cannot be opened once more (" +
                  system_error_text(errno) + "); raise the limit of open files (ulimit -n)",
              {"fcntl", __FILE__, __LINE__}};
}

void File::flush() { MOTLEY_HDF5_CHECK(subject_, H5Fflush(id(), H5F_SCOPE_LOCAL)); }

void File::close() {
  flush();
  // Released even if closing fails: HDF5 keeps such a file open until its last object is closed.
  hid_t const raw = handle_.release();
  MOTLEY_HDF5_CHECK(subject_, H5Fclose(raw));
}

Subject File::subject_of(std::string const& object) const {
  return {subject_.file, object, subject_.kind};
}

}  // namespace motley::io::hdf5
