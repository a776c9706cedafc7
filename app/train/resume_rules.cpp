#include "app/train/resume_rules.hpp"

#include <map>
#include <string_view>

#include "app/config/settings.hpp"
#include "kernels/base/error.hpp"

namespace motley::app {
namespace {

enum class Rule {
  model,      // another model: the tensors do not fit
  optimizer,  // another course of training, which may be meant
  takes_new,  // changes speed or upkeep, never the result
};

Rule rule_of(std::string_view key) {
  // The preset has already become values; the override switch is about this start alone.
  if (key == "model.preset" || key == "optimizer.override_on_resume") return Rule::takes_new;
  if (key.starts_with("model.") || key == "train.seq_length") return Rule::model;
  if (key.starts_with("optimizer.")) return Rule::optimizer;
  return Rule::takes_new;
}

std::map<std::string, std::string> values_of(std::string const& config, char const* name) {
  std::map<std::string, std::string> values;
  for (Setting const& setting : parse_settings(config, name)) {
    values[setting.key] = to_toml(setting.value);
  }
  return values;
}

std::string to_text(std::vector<KeyDifference> const& differences) {
  std::string text;
  for (KeyDifference const& one : differences) {
    text += "\n  " + one.key + ": " + one.saved + " in the checkpoint, " + one.now + " now";
  }
  return text;
}

}  // namespace

std::vector<KeyDifference> config_differences(std::string const& saved, std::string const& now) {
  auto const old_values = values_of(saved, "configuration of the checkpoint");
  std::vector<KeyDifference> differences;
  for (auto const& [key, value] : values_of(now, "configuration")) {
    auto const old_value = old_values.find(key);
    if (old_value == old_values.end() || old_value->second == value) continue;
    differences.push_back({key, old_value->second, value});
  }
  return differences;
}

std::vector<KeyDifference> check_resume(ResumeOffer const& offer, ResumeWish const& wish) {
  std::map<Rule, std::vector<KeyDifference>> by_rule;
  for (KeyDifference const& one : config_differences(offer.config, wish.config)) {
    by_rule[rule_of(one.key)].push_back(one);
  }
  MOTLEY_VALIDATE(
      checkpoint,
      by_rule[Rule::model].empty(),
      "the checkpoint is of another model (its tensors do not fit); use the model it was "
          << "written with, or another run.dir:" << to_text(by_rule[Rule::model]));
  MOTLEY_VALIDATE(data,
                  offer.data_fingerprint == wish.data_fingerprint,
                  "the checkpoint was trained on other data or in another order (fingerprint "
                      << offer.data_fingerprint << " in the checkpoint, " << wish.data_fingerprint
                      << " now); use the same data.train and run.seed, or another run.dir");
  MOTLEY_VALIDATE(
      usage,
      by_rule[Rule::optimizer].empty() || wish.may_override_optimizer,
      "the checkpoint was trained with another optimizer setting (going on would change "
          << "the course of training); restore it, or allow the change with "
          << "optimizer.override_on_resume=allow:" << to_text(by_rule[Rule::optimizer]));
  std::vector<KeyDifference> changed = by_rule[Rule::optimizer];
  changed.insert(changed.end(), by_rule[Rule::takes_new].begin(), by_rule[Rule::takes_new].end());
  return changed;
}

}  // namespace motley::app
