//! Normalizations.

mod batch;

kernels! {
    "BatchNormalization" => Kernel::plain(batch::batch_normalization),
}
