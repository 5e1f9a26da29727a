//! Where the elements of each head are, in either layout.

use crate::engine::Fault;

/// An input of heads: batch × heads × sequence × size, or batch × sequence × (heads · size).
#[derive(Clone, Copy)]
pub struct Heads {
    pub batch: usize,
    pub count: usize,
    pub length: usize,
    pub size: usize,
    /// The heads stand side by side in each row.
    pub flat: bool,
}

impl Heads {
    /// From the shape; `count` heads are needed with three axes.
    pub fn of(dims: &[usize], count: Option<i64>) -> Result<Heads, Fault> {
        match *dims {
            [batch, count, length, size] => Ok(Heads { batch, count, length, size, flat: false }),
            [batch, length, width] => {
                let heads = count.and_then(|c| usize::try_from(c).ok()).filter(|c| *c > 0 && width % c == 0);
                let count = heads
                    .ok_or_else(|| Fault::Invalid(format!("{count:?} heads do not divide shape {dims:?}")))?;
                Ok(Heads { batch, count, length, size: width / count, flat: true })
            }
            _ => Err(Fault::Invalid(format!("shape {dims:?} where three or four axes are needed"))),
        }
    }

    /// The shape with another size of heads, in the same layout.
    pub fn dims(&self, size: usize) -> Vec<usize> {
        match self.flat {
            true => vec![self.batch, self.length, self.count * size],
            false => vec![self.batch, self.count, self.length, size],
        }
    }

    /// Where a row of a head starts.
    pub fn row(&self, batch: usize, head: usize, row: usize) -> usize {
        match self.flat {
            true => ((batch * self.length + row) * self.count + head) * self.size,
            false => ((batch * self.count + head) * self.length + row) * self.size,
        }
    }

    /// From one row of a head to the next.
    pub fn step(&self) -> usize {
        if self.flat { self.count * self.size } else { self.size }
    }
}
