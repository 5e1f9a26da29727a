//! Operators that make one of many elements along axes, or look at rows as a whole.

mod arg;
mod cumulative;
mod layout;
mod reductions;
mod rows;
mod softmax;
mod top_k;

kernels! {
    "ArgMax" => Kernel::plain(arg::arg_max),
    "ArgMin" => Kernel::plain(arg::arg_min),
    "CumProd" => Kernel::plain(cumulative::cum_prod),
    "CumSum" => Kernel::plain(cumulative::cum_sum),
    "Hardmax" => Kernel::plain(softmax::hardmax),
    "LogSoftmax" => Kernel::plain(softmax::log_softmax),
    "ReduceL1" => Kernel::plain(reductions::l1),
    "ReduceL2" => Kernel::plain(reductions::l2),
    "ReduceLogSum" => Kernel::plain(reductions::log_sum),
    "ReduceLogSumExp" => Kernel::plain(reductions::log_sum_exp),
    "ReduceMax" => Kernel::plain(reductions::max),
    "ReduceMean" => Kernel::plain(reductions::mean),
    "ReduceMin" => Kernel::plain(reductions::min),
    "ReduceProd" => Kernel::plain(reductions::prod),
    "ReduceSum" => Kernel::plain(reductions::sum),
    "ReduceSumSquare" => Kernel::plain(reductions::sum_square),
    "Softmax" => Kernel::plain(softmax::softmax),
    "TopK" => Kernel::plain(top_k::top_k),
}
