//! Three models made in code: what the start page offers, what runs where no window can be opened, what tests use.

mod convolutional;
mod mixed;
mod transformer;

use crate::ir::{Builder, Model, Tensor, ValueId};

/// A model that the program brings along.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// What commands call it.
    pub name: &'static str,
    pub title: &'static str,
    /// One line.
    pub summary: &'static str,
    pub build: fn() -> Model,
}

/// All samples, the one to begin with first.
pub fn all() -> &'static [Sample] {
    &[
        Sample {
            name: "convolutional",
            title: "Small convolutional network",
            summary: "Residual blocks with BatchNormalization, Dropout and Identity leftovers, a layout round trip",
            build: convolutional::build,
        },
        Sample {
            name: "transformer",
            title: "Transformer encoder",
            summary: "Four layers as exporters write them: attention, LayerNorm and GELU spelled out, shapes computed",
            build: transformer::build,
        },
        Sample {
            name: "mixed",
            title: "Branches and a decision",
            summary: "Parallel branches, squeeze-and-excite, an If with two heads, constants that could be folded",
            build: mixed::build,
        },
    ]
}

/// Makes weights that look like trained ones, the same at every call: a linear congruential generator (Knuth's MMIX
/// constants), its high bits summed to something near a normal distribution.
struct Weights {
    state: u64,
}

impl Weights {
    fn new(seed: u64) -> Weights {
        Weights { state: seed }
    }

    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f32 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Near normal, mean 0, with a standard deviation of `spread`.
    fn normal(&mut self, dims: &[u64], spread: f32) -> Tensor {
        let count: u64 = dims.iter().product();
        let values: Vec<f32> = (0..count)
            .map(|_| ((0..4).map(|_| self.uniform()).sum::<f32>() - 2.0) * 1.7320508 * spread)
            .collect();
        Tensor::from_f32(dims, &values)
    }

    /// Uniform between two bounds.
    fn between(&mut self, dims: &[u64], low: f32, high: f32) -> Tensor {
        let count: u64 = dims.iter().product();
        let values: Vec<f32> = (0..count).map(|_| low + (high - low) * self.uniform()).collect();
        Tensor::from_f32(dims, &values)
    }
}

/// A convolution of a square kernel without bias, padded so that a stride of 1 keeps the size.
struct Convolution<'a> {
    scope: &'a str,
    from: u64,
    to: u64,
    kernel: u64,
    stride: i64,
}

/// Conv then BatchNormalization, as training leaves them: `scope/conv/Conv`, `scope/bn/BatchNormalization`.
fn convolution_and_norm(b: &mut Builder, w: &mut Weights, x: ValueId, c: Convolution) -> ValueId {
    let Convolution { scope, from, to, kernel, stride } = c;
    let spread = (2.0 / (from * kernel * kernel) as f32).sqrt();
    let dotted = scope.trim_start_matches('/').replace('/', ".");
    let weight = b.constant(&format!("{dotted}.conv.weight"), w.normal(&[to, from, kernel, kernel], spread));
    let (k, p) = (kernel as i64, (kernel / 2) as i64);
    let y = b
        .op("Conv", &[x, weight])
        .attr("dilations", [1, 1])
        .attr("group", 1)
        .attr("kernel_shape", [k, k])
        .attr("pads", [p, p, p, p])
        .attr("strides", [stride, stride])
        .named(&format!("{scope}/conv/Conv"))
        .one();
    let mut of = |name: &str, t: Tensor| b.constant(&format!("{dotted}.bn.{name}"), t);
    let scale = of("weight", w.between(&[to], 0.6, 1.4));
    let bias = of("bias", w.normal(&[to], 0.1));
    let mean = of("running_mean", w.normal(&[to], 0.2));
    let var = of("running_var", w.between(&[to], 0.5, 1.5));
    b.op("BatchNormalization", &[y, scale, bias, mean, var])
        .attr("epsilon", 1e-5f32)
        .attr("momentum", 0.9f32)
        .named(&format!("{scope}/bn/BatchNormalization"))
        .one()
}

/// A pointwise operator of the standard domain, named after its scope.
fn apply(b: &mut Builder, operator: &str, inputs: &[ValueId], scope: &str) -> ValueId {
    b.op(operator, inputs).named(&format!("{scope}/{operator}")).one()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::check::check;

    #[test]
    fn samples_are_sound_and_of_the_size_they_say() {
        let sizes = [(40, 65), (250, 360), (120, 190)];
        for (sample, (least, most)) in all().iter().zip(sizes) {
            let model = (sample.build)();
            assert!(check(&model).is_empty(), "{}", sample.name);
            let count = model.node_count();
            assert!((least..=most).contains(&count), "{} has {count} nodes", sample.name);
            let again = (sample.build)();
            assert!(format!("{model:?}") == format!("{again:?}"), "{} is the same every time", sample.name);
        }
    }
}
