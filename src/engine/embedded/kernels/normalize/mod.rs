//! Normalizations.

mod across;
mod batch;
mod rows;

kernels! {
    "BatchNormalization" => Kernel::plain(batch::batch_normalization),
    "GroupNormalization" => Kernel::plain(rows::group_normalization),
    "InstanceNormalization" => Kernel::plain(rows::instance_normalization),
    "LayerNormalization" => Kernel::plain(rows::layer_normalization),
    "LpNormalization" => Kernel::plain(across::lp_normalization),
    "LRN" => Kernel::plain(across::local_response_normalization),
    "MeanVarianceNormalization" => Kernel::plain(rows::mean_variance_normalization),
    "RMSNormalization" => Kernel::plain(rows::rms_normalization),
}
