// Runs motley's model on weights and a batch that another program wrote, and writes what it
// computed:
//   parity_dump IN.h5 OUT.h5
//
// IN   root attributes: the model and optimizer (see read_config); /weights/<Hugging Face name>;
//      /inputs and /targets [B, T] int32
// OUT  /logits [B·T, V]; /loss; /gradients/<name>; /losses [steps]; /parameters/<name> after the
// steps All arrays are float64 and hold the values of the run's dtype exactly.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include "io/hdf5/file.hpp"
#include "kernels/base/error.hpp"
#include "model/spec/hf_names.hpp"
#include "model/train/trainer.hpp"

namespace motley {
namespace {

using io::hdf5::Attributes;
using io::hdf5::DatasetSpec;
using io::hdf5::Element;
using io::hdf5::File;

struct Input {
  model::TrainerConfig config;
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
};

model::ModelSpec read_spec(Attributes const& attributes) {
  model::ModelSpec spec;
  spec.family = *model::parse_family(attributes.get_string("family"));
  spec.n_layers = attributes.get_i64("n_layers");
  spec.hidden = attributes.get_i64("hidden");
  spec.heads = attributes.get_i64("heads");
  spec.kv_heads = attributes.get_i64("kv_heads");
  spec.ffn = attributes.get_i64("ffn");
  spec.vocab = attributes.get_i64("vocab");
  spec.seq_length = attributes.get_i64("seq_length");
  spec.tied = attributes.get_i64("tied") != 0;
  spec.norm_eps = attributes.get_double("norm_eps");
  spec.dtype = *parse_dtype(attributes.get_string("dtype"));
  return model::with_defaults(spec);
}

Input read_input(File const& file) {
  Attributes const attributes = file.attributes();
  Input input;
  input.config.model = read_spec(attributes);
  input.config.optimizer.lr = attributes.get_double("lr");
  input.config.optimizer.lr_decay_style = model::LrDecayStyle::constant;
  input.config.optimizer.weight_decay = attributes.get_double("weight_decay");
  input.config.optimizer.clip_grad = attributes.get_double("clip_grad");
  input.steps = attributes.get_i64("steps");
  auto const inputs = file.open_dataset("/inputs");
  input.batch = inputs.extents()[0];
  input.inputs = inputs.read_all<std::int32_t>();
  input.targets = file.open_dataset("/targets").read_all<std::int32_t>();
  input.config.train.micro_batch_size = input.batch;
  input.config.train.global_batch_size = input.batch;
  input.config.train.train_iters = input.steps;
  return input;
}

template <class Value>
std::vector<std::span<Value>> parts_of(model::HfTensor const& tensor,
                                       std::map<std::string, NamedTensor> const& logical) {
  std::vector<std::span<Value>> parts;
  for (std::string const& name : tensor.parts) {
    NamedTensor const& part = logical.at(name);
    parts.emplace_back(static_cast<Value*>(part.data), static_cast<std::size_t>(part.count()));
  }
  return parts;
}

std::map<std::string, NamedTensor> by_name(std::vector<NamedTensor> const& tensors) {
  std::map<std::string, NamedTensor> logical;
  for (NamedTensor const& tensor : tensors) logical[tensor.name] = tensor;
  return logical;
}

template <class Value>
void load_weights(File const& file, model::Trainer& trainer) {
  auto const logical = by_name(trainer.tensors(model::StateKind::parameter));
  for (model::HfTensor const& tensor : model::hf_tensors(trainer.config().model)) {
    std::vector<double> const wide =
        file.open_dataset("/weights/" + tensor.name).read_all<double>();
    std::vector<Value> const values(wide.begin(), wide.end());
    auto const parts = parts_of<Value>(tensor, logical);
    model::split_from_hf<Value>(tensor, values, parts);
  }
  trainer.adopt_parameters();
}

void write_array(File& file,
                 std::string const& path,
                 std::vector<std::int64_t> extents,
                 std::vector<double> const& values) {
  DatasetSpec spec;
  spec.element = Element::fp64;
  spec.extents = std::move(extents);
  file.create_dataset(path, spec).write(0, std::span<double const>{values});
}

template <class Value>
void write_tensors(File& file,
                   std::string const& group,
                   model::Trainer& trainer,
                   model::StateKind kind) {
  auto const logical = by_name(trainer.tensors(kind));
  for (model::HfTensor const& tensor : model::hf_tensors(trainer.config().model)) {
    std::vector<Value> values(static_cast<std::size_t>(tensor.shape.count()));
    auto const parts = parts_of<Value const>(tensor, logical);
    model::join_to_hf<Value>(tensor, parts, values);
    std::vector<std::int64_t> extents;
    for (int dim = 0; dim < tensor.shape.order(); ++dim) extents.push_back(tensor.shape[dim]);
    write_array(file, group + tensor.name, extents, {values.begin(), values.end()});
  }
}

template <class Value>
void run(File const& in, File& out, Input const& input) {
  auto const trainer = model::make_trainer(input.config, comm::Group{});
  load_weights<Value>(in, *trainer);
  model::ModelSpec const& spec = input.config.model;
  std::vector<std::uint64_t> const samples(static_cast<std::size_t>(input.batch));
  Batch const batch{input.batch, spec.seq_length, input.inputs, input.targets, samples};
  std::int64_t const valid = static_cast<std::int64_t>(input.targets.size()) -
                             std::count(input.targets.begin(), input.targets.end(), -1);

  std::vector<double> const logits = trainer->logits(batch, model::LogitRows::all);
  write_array(out, "/logits", {input.batch * spec.seq_length, spec.vocab}, logits);
  write_array(out, "/loss", {1}, {trainer->forward_backward({&batch, 1}, valid)});
  write_tensors<Value>(out, "/gradients/", *trainer, model::StateKind::gradient);
  std::vector<double> losses;
  std::vector<double> norms;
  for (std::int64_t step = 0; step < input.steps; ++step) {
    model::StepResult const result = trainer->train_step({&batch, 1}, valid);
    losses.push_back(result.loss);
    norms.push_back(result.grad_norm);
  }
  write_array(out, "/losses", {input.steps}, losses);
  write_array(out, "/grad_norms", {input.steps}, norms);
  write_tensors<Value>(out, "/parameters/", *trainer, model::StateKind::parameter);
}

int run_files(char const* in_path, char const* out_path) {
  File const in = File::open_to_read(in_path);
  File out = File::create(out_path);
  Input const input = read_input(in);
  if (input.config.model.dtype == DType::fp64) {
    run<double>(in, out, input);
  } else {
    run<float>(in, out, input);
  }
  out.close();
  return 0;
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: parity_dump IN.h5 OUT.h5\n", stderr);
    return 64;
  }
  Kokkos::ScopeGuard const kokkos;
  try {
    return motley::run_files(argv[1], argv[2]);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "parity_dump: %s\n", error.what());
    return motley::exit_code(error);
  }
}
