//! TfIdfVectorizer.

use crate::engine::array::{Array, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use bytes::Bytes;
use std::collections::HashMap;
use std::hash::Hash;

/// TfIdfVectorizer: how often each n-gram of the pool stands in each row, weighted.
pub fn tf_idf_vectorizer(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let attributes = call.attributes;
    match array.storage() {
        Storage::Strings(_) => {
            let pool = attributes.texts("pool_strings")?.unwrap_or(&[]);
            counted(call, array.view::<Bytes>()?, pool)
        }
        Storage::I64(_) | Storage::I32(_) => {
            let pool = attributes.ints("pool_int64s")?.unwrap_or(&[]);
            counted(call, &array.integers()?, pool)
        }
        _ => call.unsupported(array.element()),
    }
}

fn counted<T: Eq + Hash + Clone>(call: &Call, items: &[T], pool: &[T]) -> Result<Outputs, Fault> {
    let attributes = call.attributes;
    let required = |name: &str| -> Result<i64, Fault> {
        attributes.optional_int(name)?.ok_or_else(|| Fault::Invalid(format!("attribute {name} is missing")))
    };
    let (shortest, longest) = (required("min_gram_length")?, required("max_gram_length")?);
    let skips = required("max_skip_count")?;
    let list = |name: &str| -> Result<&[i64], Fault> {
        attributes.ints(name)?.ok_or_else(|| Fault::Invalid(format!("attribute {name} is missing")))
    };
    let (starts, columns) = (list("ngram_counts")?, list("ngram_indexes")?);
    if !(1 <= shortest && shortest <= longest && longest <= pool.len().max(1) as i64 && skips >= 0) {
        return Err(Fault::Invalid(format!("n-grams of {shortest} to {longest} items, {skips} skipped")));
    }
    let (shortest, longest) = (shortest as usize, longest as usize);
    let outside = || Fault::Invalid("ngram_counts and ngram_indexes do not fit the pool".into());
    let grams = grams(pool, starts, columns, shortest..=longest).ok_or_else(outside)?;
    let width = match columns.iter().max() {
        Some(most) => usize::try_from(*most).ok().and_then(|m| m.checked_add(1)).ok_or_else(outside)?,
        None => return Err(outside()),
    };
    let array = call.input(0)?;
    let (rows, length, dims) = match *array.dims() {
        [] => (1, 1, vec![width]),
        [length] => (1, length, vec![width]),
        [rows, length] => (rows, length, vec![rows, width]),
        ref other => return Err(Fault::Invalid(format!("shape {other:?} is neither [C] nor [N, C]"))),
    };
    let mut counts = call.zeros::<f32>(&dims)?;
    for row in 0..rows {
        let items = &items[row * length..(row + 1) * length];
        let counts = &mut counts[row * width..(row + 1) * width];
        for size in shortest..=longest {
            let Some(grams) = grams.get(&size) else { continue };
            // Single items have nothing to skip between them.
            let distances = if size == 1 { 1 } else { (skips as usize).saturating_add(1).min(length.max(1)) };
            for distance in 1..=distances {
                let reach = (size - 1).saturating_mul(distance);
                for start in 0..length.saturating_sub(reach) {
                    let gram: Vec<&T> = items[start..].iter().step_by(distance).take(size).collect();
                    if let Some(column) = grams.get(&gram) {
                        counts[*column] += 1.0;
                    }
                }
            }
        }
    }
    let weights = attributes.floats("weights")?.filter(|w| !w.is_empty());
    if weights.is_some_and(|w| w.len() != columns.len()) {
        return Err(Fault::Invalid(format!("weights do not fit {} n-grams", columns.len())));
    }
    // The weight of an n-gram stands where the n-gram does in the pool, not where its column is.
    let mut weight_of = vec![1f32; width];
    for (column, weight) in columns.iter().zip(weights.unwrap_or(&[])) {
        weight_of[*column as usize] = *weight;
    }
    let weighted = |count: f32, weight: f32| -> Result<f32, Fault> {
        Ok(match attributes.text("mode", "")? {
            "TF" => count,
            "IDF" => {
                if count > 0.0 {
                    weight
                } else {
                    0.0
                }
            }
            "TFIDF" => count * weight,
            other => return Err(Fault::Invalid(format!("mode {other} is not one the standard knows"))),
        })
    };
    for counts in counts.chunks_mut(width) {
        for (count, weight) in counts.iter_mut().zip(&weight_of) {
            *count = weighted(*count, *weight)?;
        }
    }
    one(Array::new(&dims, counts))
}

/// Grams of one length with the column where each is counted.
type Grams<'p, T> = HashMap<Vec<&'p T>, usize>;

/// The grams of the pool by their length. `starts` says where in the pool the grams of 1, 2, … items begin. A gram that
/// is there twice counts in the later column, as in ONNX's reference implementation. `None` when the lists do not fit.
fn grams<'p, T: Eq + Hash>(
    pool: &'p [T],
    starts: &[i64],
    columns: &[i64],
    lengths: std::ops::RangeInclusive<usize>,
) -> Option<HashMap<usize, Grams<'p, T>>> {
    let mut all: HashMap<usize, Grams<T>> = HashMap::new();
    let mut number = 0;
    for (at, start) in starts.iter().enumerate() {
        let size = at + 1;
        let end = match starts.get(at + 1) {
            Some(end) => usize::try_from(*end).ok()?,
            None => pool.len(),
        };
        let part = pool.get(usize::try_from(*start).ok()?..end)?;
        for gram in part.chunks_exact(size) {
            let column = usize::try_from(*columns.get(number)?).ok()?;
            number += 1;
            if lengths.contains(&size) {
                all.entry(size).or_default().insert(gram.iter().collect(), column);
            }
        }
    }
    Some(all)
}
