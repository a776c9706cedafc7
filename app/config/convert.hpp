#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "app/config/field.hpp"
#include "app/config/settings.hpp"

// How values of each C++ type of the configuration are read from and written as settings. Reading
// returns what is wrong ("" if nothing): problems are collected, not thrown one by one.
namespace motley::app::detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

inline std::string expected(std::string_view what, RawValue const& raw) {
  return "takes " + std::string{what} + ", not " + std::string{kind_name(raw)} + " (" +
         to_toml(raw) + ")";
}

inline std::string check_range(Field const& field, double number) {
  if (number >= field.min && number <= field.max) return "";
  std::string text = "is " + to_toml(RawValue{number}) + ", which is out of range (";
  if (std::isinf(field.max))
    return text + "at least " + to_toml(RawValue{field.min}) + " is needed)";
  return text + "it must lie from " + to_toml(RawValue{field.min}) + " to " +
         to_toml(RawValue{field.max}) + ")";
}

inline std::string read(Field const&, RawValue const& raw, bool& value) {
  auto const* flag = std::get_if<bool>(&raw);
  if (flag == nullptr) return expected("true or false", raw);
  value = *flag;
  return "";
}

inline std::string read(Field const& field, RawValue const& raw, double& value) {
  if (auto const* real = std::get_if<double>(&raw)) {
    value = *real;
  } else if (auto const* integer = std::get_if<std::int64_t>(&raw)) {
    value = static_cast<double>(*integer);
  } else {
    return expected("a number", raw);
  }
  return check_range(field, value);
}

template <class Integer>
requires std::is_integral_v<Integer> std::string read(Field const& field,
                                                      RawValue const& raw,
                                                      Integer& value) {
  std::int64_t number = 0;
  if (auto const* integer = std::get_if<std::int64_t>(&raw)) {
    number = *integer;
  } else if (auto const* real = std::get_if<double>(&raw);
             real != nullptr && *real == std::floor(*real) && std::abs(*real) < 0x1p53) {
    number = static_cast<std::int64_t>(*real);  // 1e6 is a fine way to write a count
  } else {
    return expected("an integer", raw);
  }
  if (std::string problem = check_range(field, static_cast<double>(number)); !problem.empty()) {
    return problem;
  }
  value = static_cast<Integer>(number);
  return "";
}

inline std::string read(Field const&, RawValue const& raw, std::string& value) {
  auto const* text = std::get_if<std::string>(&raw);
  if (text == nullptr) return expected("a string", raw);
  value = *text;
  return "";
}

/// Two numbers under one key, e.g. optimizer.betas.
struct NumberPair {
  double& first;
  double& second;
};

inline std::string read(Field const&, RawValue const& raw, NumberPair& value) {
  auto const* numbers = std::get_if<std::vector<double>>(&raw);
  if (numbers == nullptr || numbers->size() != 2) return expected("a list of two numbers", raw);
  value.first = (*numbers)[0];
  value.second = (*numbers)[1];
  return "";
}

template <class E>
requires std::is_enum_v<E> std::string read(Field const&, RawValue const& raw, E& value) {
  auto const* text = std::get_if<std::string>(&raw);
  std::string choices;
  for (std::size_t i = 0; i < EnumNames<E>::names.size(); ++i) {
    if (text != nullptr && EnumNames<E>::names[i].name == *text) {
      value = EnumNames<E>::names[i].value;
      return "";
    }
    choices += (i > 0 ? ", " : "") + std::string{EnumNames<E>::names[i].name};
  }
  return "is " + to_toml(raw) + ", which is none of " + choices;
}

template <class T>
std::string read(Field const& field, RawValue const& raw, std::optional<T>& value) {
  auto const* text = std::get_if<std::string>(&raw);
  if (text != nullptr && *text == "auto") {
    value.reset();
    return "";
  }
  T inner{};
  std::string problem = read(field, raw, inner);
  if (!problem.empty()) return problem + " (or \"auto\")";
  value = inner;
  return "";
}

template <class T>
RawValue write(T const& value) {
  if constexpr (IsOptional<T>::value) {
    return value.has_value() ? write(*value) : RawValue{std::string{"auto"}};
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::is_enum_v<T>) {
    for (auto const& row : EnumNames<T>::names) {
      if (row.value == value) return std::string{row.name};
    }
    return std::string{};
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double> ||
                       std::is_same_v<T, std::string>) {
    return value;
  } else {
    return std::vector<double>{value.first, value.second};
  }
}

}  // namespace motley::app::detail
