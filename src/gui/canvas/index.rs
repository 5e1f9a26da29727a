//! Which of many rectangles touch a given one: a uniform grid, so that a frame asks only about what is in view.

use egui::{Pos2, Rect};

/// Cells aimed at per rectangle, and the most cells a grid may have.
const CELLS_PER_ITEM: f32 = 1.0;
const MOST_CELLS: usize = 1 << 18;
/// A rectangle over this many cells is kept in a list of its own that every query walks.
const MOST_CELLS_PER_ITEM: usize = 64;

/// A grid over rectangles, named by their place in the list given to [`Index::new`].
#[derive(Debug, Clone, Default)]
pub struct Index {
    rects: Vec<Rect>,
    origin: Pos2,
    cell: f32,
    columns: usize,
    rows: usize,
    /// Where each cell's items begin in `items`; one more entry than cells.
    starts: Vec<u32>,
    items: Vec<u32>,
    large: Vec<u32>,
}

impl Index {
    /// A grid over `rects`; empty and non-finite ones are never found.
    pub fn new(rects: Vec<Rect>) -> Index {
        let bounds = rects.iter().filter(|r| r.is_finite()).fold(Rect::NOTHING, |all, &r| all.union(r));
        if !bounds.is_finite() {
            return Index { rects, ..Index::default() };
        }
        let wanted = (rects.len() as f32 * CELLS_PER_ITEM).clamp(1.0, MOST_CELLS as f32);
        let (width, height) = (bounds.width().max(1.0), bounds.height().max(1.0));
        let cell = (width * height / wanted).sqrt().max(width.max(height) / 65_536.0).max(1.0);
        let columns = (width / cell) as usize + 1;
        let rows = (height / cell) as usize + 1;
        let mut index = Index { rects, origin: bounds.min, cell, columns, rows, ..Index::default() };
        index.fill();
        index
    }

    /// Counting sort of the rectangles into the cells.
    fn fill(&mut self) {
        let mut starts = vec![0u32; self.columns * self.rows + 1];
        let mut large = Vec::new();
        let mut spans = Vec::with_capacity(self.rects.len());
        for (i, rect) in self.rects.iter().enumerate() {
            let span = if rect.is_finite() && !rect.is_negative() { self.span(*rect) } else { None };
            if let Some([left, top, right, bottom]) = span {
                if (right - left + 1) * (bottom - top + 1) > MOST_CELLS_PER_ITEM {
                    large.push(i as u32);
                    spans.push(None);
                    continue;
                }
                for row in top..=bottom {
                    for column in left..=right {
                        starts[row * self.columns + column + 1] += 1;
                    }
                }
            }
            spans.push(span);
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut items = vec![0u32; starts.last().copied().unwrap_or(0) as usize];
        for (i, span) in spans.iter().enumerate() {
            let Some([left, top, right, bottom]) = *span else { continue };
            for row in top..=bottom {
                for column in left..=right {
                    let slot = &mut next[row * self.columns + column];
                    items[*slot as usize] = i as u32;
                    *slot += 1;
                }
            }
        }
        (self.starts, self.items, self.large) = (starts, items, large);
    }

    /// First and last column and row that `rect` touches.
    fn span(&self, rect: Rect) -> Option<[usize; 4]> {
        if self.columns == 0 {
            return None;
        }
        let at = |v: f32, origin: f32, count: usize| {
            (((v - origin) / self.cell).floor().max(0.0) as usize).min(count - 1)
        };
        let end =
            [self.origin.x + self.columns as f32 * self.cell, self.origin.y + self.rows as f32 * self.cell];
        if rect.max.x < self.origin.x
            || rect.max.y < self.origin.y
            || rect.min.x > end[0]
            || rect.min.y > end[1]
        {
            return None;
        }
        Some([
            at(rect.min.x, self.origin.x, self.columns),
            at(rect.min.y, self.origin.y, self.rows),
            at(rect.max.x, self.origin.x, self.columns),
            at(rect.max.y, self.origin.y, self.rows),
        ])
    }

    /// The rectangles that touch `area`, in the order of the list.
    pub fn touching(&self, area: Rect) -> Vec<u32> {
        let touches = |i: u32| self.rects.get(i as usize).is_some_and(|r| r.intersects(area));
        let mut found: Vec<u32> = self.large.iter().copied().filter(|&i| touches(i)).collect();
        if let Some([left, top, right, bottom]) = self.span(area) {
            for row in top..=bottom {
                let from = self.starts[row * self.columns + left] as usize;
                let to = self.starts[row * self.columns + right + 1] as usize;
                found.extend(self.items[from..to].iter().copied().filter(|&i| touches(i)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::{pos2, vec2};

    /// A fixed sequence that looks random enough.
    fn scattered(count: usize) -> Vec<Rect> {
        let mut state = 7u32;
        let mut next = |limit: f32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 * limit
        };
        let mut rect = |i: usize| {
            let size =
                if i.is_multiple_of(50) { vec2(900.0, 90_000.0) } else { vec2(next(200.0), next(60.0)) };
            Rect::from_min_size(pos2(next(1000.0), next(100_000.0) - 500.0), size)
        };
        (0..count).map(&mut rect).collect()
    }

    #[test]
    fn finds_exactly_what_a_scan_finds() {
        let rects = scattered(2000);
        let index = Index::new(rects.clone());
        for y in [-2000.0, -500.0, 0.0, 1234.5, 50_000.0, 99_999.0, 200_000.0] {
            for size in [vec2(0.0, 0.0), vec2(300.0, 200.0), vec2(2000.0, 20_000.0)] {
                let area = Rect::from_min_size(pos2(400.0, y), size);
                let scan: Vec<u32> =
                    (0..rects.len() as u32).filter(|&i| rects[i as usize].intersects(area)).collect();
                assert_eq!(index.touching(area), scan, "{area:?}");
            }
        }
    }

    #[test]
    fn nothing_and_nonsense_are_fine() {
        assert!(Index::new(Vec::new()).touching(Rect::EVERYTHING).is_empty());
        let odd = Index::new(vec![Rect::NOTHING, Rect::NAN, Rect::from_min_size(Pos2::ZERO, vec2(5.0, 5.0))]);
        assert_eq!(odd.touching(Rect::from_min_size(Pos2::ZERO, vec2(1.0, 1.0))), [2]);
    }
}
