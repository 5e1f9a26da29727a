//! Small random graphs full of what passes trip over: leftovers, equal twins, shared and overridable initializers,
//! -0.0 and NaN, dynamic dimensions, values that are also outputs, bodies that read from outside, several operator sets.

use passlens::ir::{Builder, ElementType, Model, Tensor, ValueId};

/// A seeded generator (splitmix64, Steele, Lea and Flood 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e3779b97f4a7c15))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }

    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn float(&mut self) -> f32 {
        match self.below(12) {
            0 => 0.0,
            1 => -0.0,
            2 => 1.0,
            _ => (self.next() % 4001) as f32 / 1000.0 - 2.0,
        }
    }
}

/// A value of the graph with what the generator knows of it: float32 of rank 2 (`[n, 4]`) or 4 (`[n, 4, 3, 3]`).
#[derive(Clone, Copy)]
struct Known {
    value: ValueId,
    rank: usize,
}

/// A graph of about `size` operators; the same for the same seed.
pub fn graph(seed: u64, size: usize) -> Model {
    let mut r = Random::new(seed);
    let opset = [9, 11, 13, 17, 18][r.below(5)];
    let mut b = Builder::new("random", opset);
    b.header().ir_version = [4, 7, 8][r.below(3)];
    let flat = b.input("flat", ElementType::FLOAT, &["n".into(), 4.into()]);
    let image = b.input("image", ElementType::FLOAT, &["n".into(), 4.into(), 3.into(), 3.into()]);
    let condition = b.input("condition", ElementType::BOOL, &[]);
    let mut pool = vec![Known { value: flat, rank: 2 }, Known { value: image, rank: 4 }];
    let shared = (0..3)
        .map(|i| random_weight(&mut r, &mut b, &format!("shared_{i}"), &[4, 4, 1, 1]))
        .collect::<Vec<_>>();
    for _ in 0..size {
        let made = operator(&mut r, &mut b, &pool, opset, condition, &shared);
        pool.extend(made);
    }
    let count = 1 + r.below(3);
    let mut given = Vec::new();
    for _ in 0..count {
        let k = pool[2 + r.below(pool.len() - 2)];
        if !given.contains(&k.value) {
            given.push(k.value);
            b.output(k.value);
        }
    }
    b.finish().unwrap_or_else(|faults| panic!("seed {seed}: {faults:?}"))
}

fn random_weight(r: &mut Random, b: &mut Builder, name: &str, dims: &[u64]) -> ValueId {
    let count: u64 = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|_| r.float()).collect();
    b.constant(name, Tensor::from_f32(dims, &values))
}

fn operator(
    r: &mut Random,
    b: &mut Builder,
    pool: &[Known],
    opset: i64,
    condition: ValueId,
    shared: &[ValueId],
) -> Option<Known> {
    let x = pool[r.below(pool.len())];
    let same = |value| Some(Known { value, rank: x.rank });
    let other = |r: &mut Random| {
        let fits: Vec<&Known> = pool.iter().filter(|k| k.rank == x.rank).collect();
        fits[r.below(fits.len())].value
    };
    match r.below(19) {
        0 => same(b.op("Identity", &[x.value]).one()),
        1 => same(b.op("Dropout", &[x.value]).one()),
        2 => same(b.op(["Relu", "Abs", "Neg", "Sigmoid"][r.below(4)], &[x.value]).one()),
        3 => {
            let y = other(r);
            same(b.op(["Add", "Mul", "Sub"][r.below(3)], &[x.value, y]).one())
        }
        4 => {
            let value = [0.0, -0.0, 1.0, 2.0, f32::NAN][r.below(5)];
            let c = b.constant("scalar", Tensor::scalar_f32(value));
            same(b.op(["Add", "Mul", "Sub", "Div"][r.below(4)], &[x.value, c]).one())
        }
        5 => same(b.op("Cast", &[x.value]).attr("to", 1).one()),
        6 => {
            let wide = b.op("Cast", &[x.value]).attr("to", [11, 10, 6][r.below(3)]).one();
            same(b.op("Cast", &[wide]).attr("to", 1).one())
        }
        7 if x.rank == 4 => {
            let perms = [[0, 1, 2, 3], [0, 1, 3, 2]];
            same(b.op("Transpose", &[x.value]).attr("perm", perms[r.below(2)]).one())
        }
        8 if x.rank == 4 => {
            let there = b.op("Transpose", &[x.value]).attr("perm", [0, 2, 3, 1]).one();
            let there = if r.chance(30) { b.op("Abs", &[there]).one() } else { there };
            same(b.op("Transpose", &[there]).attr("perm", [0, 3, 1, 2]).one())
        }
        9 if x.rank == 4 => {
            let target =
                b.constant("target", Tensor::ints(&[[0, -1, 3, 3], [-1, 4, 3, 3], [0, 4, 3, 3]][r.below(3)]));
            same(b.op("Reshape", &[x.value, target]).one())
        }
        10 if x.rank == 4 => {
            let first = b.constant("target", Tensor::ints(&[[0, -1], [-1, 36]][r.below(2)]));
            let second = b.constant("target", Tensor::ints(&[-1, 4, 3, 3]));
            let y = b.op("Reshape", &[x.value, first]).one();
            same(b.op("Reshape", &[y, second]).one())
        }
        11 | 12 if x.rank == 4 => {
            let weight = match r.chance(40) {
                true => shared[r.below(shared.len())],
                false => random_weight(r, b, "weight", &[4, 4, 1, 1]),
            };
            let mut inputs = vec![x.value, weight];
            if r.chance(50) {
                inputs.push(random_weight(r, b, "bias", &[4]));
            }
            let y = b.op("Conv", &inputs).attr("kernel_shape", [1, 1]).one();
            if !r.chance(75) {
                return same(y);
            }
            let scale = random_weight(r, b, "scale", &[4]);
            let shift = random_weight(r, b, "shift", &[4]);
            let mean = random_weight(r, b, "mean", &[4]);
            let var = b.constant("var", Tensor::from_f32(&[4], &[0.5, 1.0, 1.5, 2.0]));
            same(b.op("BatchNormalization", &[y, scale, shift, mean, var]).one())
        }
        13 if x.rank == 2 => {
            let weight = random_weight(r, b, "matrix", &[4, 4]);
            let y = b.op("MatMul", &[x.value, weight]).one();
            let dims: [&[u64]; 4] = [&[4], &[1, 4], &[], &[1, 1, 4]];
            let bias = dims[r.below(3)];
            let bias = random_weight(r, b, "bias", bias);
            same(if r.chance(50) { b.op("Add", &[y, bias]).one() } else { b.op("Add", &[bias, y]).one() })
        }
        14 => {
            // Equal twins.
            let operator = ["Abs", "Exp", "Neg"][r.below(3)];
            let one = b.op(operator, &[x.value]).one();
            let two = b.op(operator, &[x.value]).one();
            same(b.op("Sub", &[one, two]).one())
        }
        15 if opset >= 13 => {
            let axes = b.constant("axes", Tensor::ints(&[1]));
            let y = b.op("Unsqueeze", &[x.value, axes]).one();
            let axes = b.constant("axes", Tensor::ints(&[1]));
            same(b.op("Squeeze", &[y, axes]).one())
        }
        15 => {
            let y = b.op("Unsqueeze", &[x.value]).attr("axes", [1]).one();
            same(b.op("Squeeze", &[y]).attr("axes", [1]).one())
        }
        16 => {
            let outer = other(r);
            let plain = r.chance(50);
            let then = move |b: &mut Builder| {
                let y = b.op("Identity", &[outer]).one();
                let y = if plain { y } else { b.op("Neg", &[y]).one() };
                b.output(y);
            };
            let inner = x.value;
            let other = move |b: &mut Builder| {
                let y = b.op("Abs", &[inner]).one();
                let z = b.op("Abs", &[inner]).one();
                let sum = b.op("Add", &[y, z]).one();
                b.output(sum);
            };
            same(b.op("If", &[condition]).body("then_branch", then).body("else_branch", other).one())
        }
        17 => same(b.op("Concat", &[x.value]).attr("axis", 0).one()),
        _ => {
            let y = b.op("Sum", &[x.value]).one();
            same(y)
        }
    }
}
