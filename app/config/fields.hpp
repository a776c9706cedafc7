#pragma once

#include <array>

#include "app/config/convert.hpp"
#include "app/config/field.hpp"
#include "app/config/run_config.hpp"

namespace motley::app {

template <>
struct EnumNames<DType> {
  static constexpr std::array names{EnumName<DType>{DType::fp32, "fp32"},
                                    EnumName<DType>{DType::bf16, "bf16"},
                                    EnumName<DType>{DType::fp64, "fp64"}};
};

template <>
struct EnumNames<model::Family> {
  static constexpr std::array names{EnumName<model::Family>{model::Family::gpt2, "gpt2"},
                                    EnumName<model::Family>{model::Family::llama, "llama"}};
};

template <>
struct EnumNames<model::LrDecayStyle> {
  using Style = model::LrDecayStyle;
  static constexpr std::array names{EnumName<Style>{Style::cosine, "cosine"},
                                    EnumName<Style>{Style::linear, "linear"},
                                    EnumName<Style>{Style::constant, "constant"},
                                    EnumName<Style>{Style::wsd, "wsd"}};
};

template <>
struct EnumNames<model::Recompute> {
  static constexpr std::array names{EnumName<model::Recompute>{model::Recompute::none, "none"},
                                    EnumName<model::Recompute>{model::Recompute::full, "full"}};
};

template <>
struct EnumNames<OverrideOnResume> {
  static constexpr std::array names{EnumName<OverrideOnResume>{OverrideOnResume::error, "error"},
                                    EnumName<OverrideOnResume>{OverrideOnResume::allow, "allow"}};
};

namespace detail {

template <class Visitor>
void visit_run(RunConfig& c, Visitor& visit) {
  visit(Field{.key = "run.dir", .doc = "folder of the run", .is_required = true, .alias = "save"},
        c.run.dir);
  visit(Field{.key = "run.seed",
              .doc = "seed of weights, data order and dropout",
              .min = 0,
              .max = 0x1p53,
              .alias = "seed"},
        c.run.seed);
  visit(Field{.key = "run.name", .doc = "name printed at start"}, c.run.name);
  visit(Field{.key = "run.threads",
              .doc = "threads per rank (auto: all cores this process may use)",
              .min = 1,
              .max = 4096},
        c.run.threads);
}

template <class Visitor>
void visit_model(RunConfig& c, Visitor& visit) {
  visit(Field{.key = "model.preset", .doc = "published size to start from, e.g. gpt2-124m"},
        c.preset);
  visit(Field{.key = "model.family", .doc = "gpt2 | llama"}, c.model.family);
  visit(Field{.key = "model.n_layers", .doc = "transformer layers"}, c.model.n_layers);
  visit(Field{.key = "model.hidden", .doc = "model width, elements"}, c.model.hidden);
  visit(Field{.key = "model.heads", .doc = "query heads"}, c.model.heads);
  visit(Field{.key = "model.kv_heads", .doc = "key/value heads (0: as many as heads)"},
        c.model.kv_heads);
  visit(Field{.key = "model.ffn", .doc = "feed-forward width, elements (0: 4 × hidden; llama 8/3)"},
        c.model.ffn);
  visit(Field{.key = "model.vocab", .doc = "token ids"}, c.model.vocab);
  visit(Field{.key = "model.tied", .doc = "head shares the token embedding"}, c.model.tied);
  visit(Field{.key = "model.dropout", .doc = "rate on the embedding and both residual branches"},
        c.model.dropout);
  visit(Field{.key = "model.norm_eps", .doc = "added to the variance in norms"}, c.model.norm_eps);
  visit(Field{.key = "model.rope_theta", .doc = "base of the rotary frequencies (llama)"},
        c.model.rope_theta);
  visit(Field{.key = "model.dtype", .doc = "fp32 | bf16 | fp64, of parameters and activations"},
        c.model.dtype);
}

template <class Visitor>
void visit_data_and_train(RunConfig& c, Visitor& visit) {
  visit(Field{.key = "data.train", .doc = "training data set (HDF5)", .is_required = true},
        c.data.train);
  visit(Field{.key = "data.valid", .doc = "validation data set (HDF5); empty: none"}, c.data.valid);
  visit(Field{.key = "data.tokenizer", .doc = "tokenizer.json, for motley sample"},
        c.data.tokenizer);
  visit(
      Field{.key = "train.micro_batch_size",
            .doc = "windows per forward and backward (auto: largest divisor of the batch up to 8)",
            .min = 1,
            .alias = "micro_batch_size"},
      c.train.micro_batch_size);
  visit(Field{.key = "train.global_batch_size",
              .doc = "windows per step",
              .min = 1,
              .is_required = true,
              .alias = "global_batch_size"},
        c.train.global_batch_size);
  visit(Field{.key = "train.seq_length", .doc = "window, tokens", .alias = "seq_length"},
        c.model.seq_length);
  visit(Field{.key = "train.train_iters",
              .doc = "steps of the run; the learning rate spans them",
              .min = 1,
              .is_required = true,
              .alias = "train_iters"},
        c.train.train_iters);
  visit(Field{.key = "train.exit_at_step",
              .doc = "save and exit 75 at this step (0: off)",
              .min = 0,
              .alias = "exit_interval"},
        c.train.exit_at_step);
}

template <class Visitor>
void visit_optimizer(RunConfig& c, Visitor& visit) {
  model::OptimizerConfig& o = c.optimizer;
  NumberPair betas{o.beta1, o.beta2};
  visit(Field{.key = "optimizer.betas", .doc = "AdamW's decay of mean and mean square"}, betas);
  visit(Field{.key = "optimizer.eps", .doc = "AdamW's epsilon, added to the root"}, o.eps);
  visit(Field{.key = "optimizer.lr", .doc = "largest learning rate", .alias = "lr"}, o.lr);
  visit(Field{.key = "optimizer.min_lr",
              .doc = "last learning rate (auto: 0.1 × lr)",
              .alias = "min_lr"},
        o.min_lr);
  visit(Field{.key = "optimizer.lr_warmup_iters",
              .doc = "steps of linear rise from 0",
              .alias = "lr_warmup_iters"},
        o.lr_warmup_iters);
  visit(Field{.key = "optimizer.lr_decay_style",
              .doc = "cosine | linear | constant | wsd",
              .alias = "lr_decay_style"},
        o.lr_decay_style);
  visit(Field{.key = "optimizer.lr_decay_share", .doc = "share of the steps in which wsd falls"},
        o.lr_decay_share);
  visit(Field{.key = "optimizer.weight_decay",
              .doc = "decoupled decay, on matrices only",
              .alias = "weight_decay"},
        o.weight_decay);
  visit(Field{.key = "optimizer.clip_grad",
              .doc = "largest global gradient norm (0: no clipping)",
              .alias = "clip_grad"},
        o.clip_grad);
  visit(Field{.key = "optimizer.override_on_resume",
              .doc = "error | allow: a checkpoint with other optimizer keys"},
        c.override_on_resume);
}

template <class Visitor>
void visit_upkeep(RunConfig& c, Visitor& visit) {
  visit(Field{.key = "memory.recompute",
              .doc = "none | full: run a layer's forward again in its backward",
              .alias = "recompute"},
        c.memory.recompute);
  visit(Field{.key = "memory.target", .doc = "share of the free memory a run may take"},
        c.memory.target);
  visit(Field{.key = "checkpoint.interval",
              .doc = "steps between checkpoints (0: at the end only)",
              .min = 0,
              .alias = "save_interval"},
        c.checkpoint.interval);
  visit(Field{.key = "checkpoint.keep_last",
              .doc = "newest checkpoints that are kept",
              .min = 1,
              .alias = "keep_latest_k"},
        c.checkpoint.keep_last);
  visit(Field{.key = "checkpoint.keep_every",
              .doc = "steps; checkpoints at its multiples are kept for ever (0: none)",
              .min = 0},
        c.checkpoint.keep_every);
  visit(Field{.key = "checkpoint.resume",
              .doc = "never | auto | path of a checkpoint",
              .alias = "load"},
        c.checkpoint.resume);
  visit(Field{.key = "checkpoint.verify",
              .doc = "read a checkpoint back before the last verified one is deleted"},
        c.checkpoint.verify);
  visit(Field{.key = "eval.interval",
              .doc = "steps between validations (0: at the end only)",
              .min = 0,
              .alias = "eval_interval"},
        c.eval.interval);
  visit(Field{.key = "eval.iters",
              .doc = "micro-batches per validation",
              .min = 1,
              .alias = "eval_iters"},
        c.eval.iters);
  visit(Field{.key = "log.interval",
              .doc = "steps between log lines",
              .min = 1,
              .alias = "log_interval"},
        c.log.interval);
  visit(Field{.key = "fault.max_skips", .doc = "bad steps in a row that are skipped"},
        c.fault.max_skips);
}

}  // namespace detail

/// Calls visit(Field, value&) for every key, in the order in which a configuration is written.
///
/// The one list of keys: reading, writing, help, and the search for unknown keys all use it.
template <class Visitor>
void visit_fields(RunConfig& config, Visitor&& visit) {
  detail::visit_run(config, visit);
  detail::visit_model(config, visit);
  detail::visit_data_and_train(config, visit);
  detail::visit_optimizer(config, visit);
  detail::visit_upkeep(config, visit);
}

}  // namespace motley::app
