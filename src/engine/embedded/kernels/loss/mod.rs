//! Loss functions, and the optimizers of the training domain.

mod entropy;
mod optimizers;

kernels! {
    "NegativeLogLikelihoodLoss" => Kernel::plain(entropy::negative_log_likelihood_loss),
    "SoftmaxCrossEntropyLoss" => Kernel::plain(entropy::softmax_cross_entropy_loss),
}

/// Operators of ai.onnx.preview.training. Gradient, which is a graph transformation, has no kernel.
pub mod training {
    use super::optimizers;

    kernels! {
        "Adagrad" => Kernel::plain(optimizers::adagrad),
        "Adam" => Kernel::plain(optimizers::adam),
        "Momentum" => Kernel::plain(optimizers::momentum),
    }
}
