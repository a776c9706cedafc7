#include <memory>

#include "io/hdf5/file.hpp"

namespace motley::io::hdf5 {
namespace {

/// The HDF5 type of a UTF-8 string of a fixed length, padded with zero bytes.
TypeHandle make_string_type(std::size_t bytes, Subject const& subject) {
  TypeHandle type{MOTLEY_HDF5_CHECK(subject, H5Tcopy(H5T_C_S1))};
  MOTLEY_HDF5_CHECK(subject, H5Tset_size(type.get(), bytes));
  MOTLEY_HDF5_CHECK(subject, H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
  MOTLEY_HDF5_CHECK(subject, H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

void expect_single(AttributeHandle const& attribute, H5T_class_t type, Subject const& subject) {
  SpaceHandle const space{MOTLEY_HDF5_CHECK(subject, H5Aget_space(attribute.get()))};
  TypeHandle const found{MOTLEY_HDF5_CHECK(subject, H5Aget_type(attribute.get()))};
  bool const is_single = H5Sget_simple_extent_npoints(space.get()) == 1;
  if (is_single && H5Tget_class(found.get()) == type) return;
  throw Error{subject.kind,
              "attribute \"" + subject.object + "\" of \"" + subject.file +
                  "\" is not one value of the expected type (something else wrote it, or the file "
                  "is damaged); build the file again",
              {"expect_single", __FILE__, __LINE__}};
}

/// A string that HDF5 keeps apart from the attribute, as h5py writes them.
std::string read_variable_string(hid_t attribute, hid_t type, Subject const& subject) {
  char* text = nullptr;
  MOTLEY_HDF5_CHECK(subject, H5Aread(attribute, type, static_cast<void*>(&text)));
  struct Free {
    void operator()(char* memory) const noexcept { H5free_memory(memory); }
  };
  std::unique_ptr<char, Free> const owner{text};
  return text == nullptr ? std::string{} : std::string{text};
}

}  // namespace

Attributes::Attributes(hid_t object, Subject subject)
    : object_{object}, subject_{std::move(subject)} {}

Subject Attributes::subject_of(std::string const& name) const {
  std::string object = subject_.object;
  if (!object.empty()) object += ":";
  return {subject_.file, object + name, subject_.kind};
}

bool Attributes::contains(std::string const& name) const {
  return MOTLEY_HDF5_CHECK(subject_of(name), H5Aexists(object_, name.c_str())) > 0;
}

void Attributes::set_scalar(std::string const& name, hid_t type, void const* value) {
  Subject const subject = subject_of(name);
  if (contains(name)) MOTLEY_HDF5_CHECK(subject, H5Adelete(object_, name.c_str()));
  SpaceHandle const space{MOTLEY_HDF5_CHECK(subject, H5Screate(H5S_SCALAR))};
  AttributeHandle const attribute{MOTLEY_HDF5_CHECK(
      subject, H5Acreate2(object_, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT))};
  MOTLEY_HDF5_CHECK(subject, H5Awrite(attribute.get(), type, value));
}

void Attributes::set(std::string const& name, std::string_view value) {
  // HDF5 has no strings of length zero: one zero byte stands for them.
  TypeHandle const type = make_string_type(value.empty() ? 1 : value.size(), subject_of(name));
  set_scalar(name, type.get(), value.empty() ? "" : value.data());
}

void Attributes::set(std::string const& name, std::uint64_t value) {
  set_scalar(name, H5T_STD_U64LE, &value);
}

void Attributes::set(std::string const& name, std::int64_t value) {
  set_scalar(name, H5T_STD_I64LE, &value);
}

void Attributes::set(std::string const& name, double value) {
  set_scalar(name, H5T_IEEE_F64LE, &value);
}

void Attributes::get_scalar(std::string const& name,
                            hid_t memory_type,
                            H5T_class_t type,
                            void* value) const {
  Subject const subject = subject_of(name);
  AttributeHandle const attribute{
      MOTLEY_HDF5_CHECK(subject, H5Aopen(object_, name.c_str(), H5P_DEFAULT))};
  expect_single(attribute, type, subject);
  MOTLEY_HDF5_CHECK(subject, H5Aread(attribute.get(), memory_type, value));
}

std::uint64_t Attributes::get_u64(std::string const& name) const {
  std::uint64_t value = 0;
  get_scalar(name, H5T_NATIVE_UINT64, H5T_INTEGER, &value);
  return value;
}

std::int64_t Attributes::get_i64(std::string const& name) const {
  std::int64_t value = 0;
  get_scalar(name, H5T_NATIVE_INT64, H5T_INTEGER, &value);
  return value;
}

double Attributes::get_double(std::string const& name) const {
  double value = 0;
  get_scalar(name, H5T_NATIVE_DOUBLE, H5T_FLOAT, &value);
  return value;
}

std::string Attributes::get_string(std::string const& name) const {
  Subject const subject = subject_of(name);
  AttributeHandle const attribute{
      MOTLEY_HDF5_CHECK(subject, H5Aopen(object_, name.c_str(), H5P_DEFAULT))};
  expect_single(attribute, H5T_STRING, subject);
  TypeHandle const type{MOTLEY_HDF5_CHECK(subject, H5Aget_type(attribute.get()))};
  if (MOTLEY_HDF5_CHECK(subject, H5Tis_variable_str(type.get())) > 0) {
    return read_variable_string(attribute.get(), type.get(), subject);
  }
  std::string text(H5Tget_size(type.get()), '\0');
  MOTLEY_HDF5_CHECK(subject, H5Aread(attribute.get(), type.get(), text.data()));
  return text.substr(0, text.find('\0'));
}

}  // namespace motley::io::hdf5
