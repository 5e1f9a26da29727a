//! Bytes alive during a run.

use crate::engine::array::{Array, Value};
use crate::engine::fault::Fault;
use rustc_hash::FxHashMap;

/// Counts each buffer once, however many arrays share it. Weights and inputs are not counted: they were there before.
#[derive(Default)]
pub struct Ledger {
    /// Holders and bytes, by address of the buffer.
    held: FxHashMap<usize, (u32, usize)>,
    live: u64,
    peak: u64,
    limit: u64,
}

impl Ledger {
    pub fn new(limit: u64) -> Ledger {
        Ledger { limit, ..Ledger::default() }
    }

    /// Bytes that may still be taken.
    pub fn room(&self) -> u64 {
        self.limit.saturating_sub(self.live)
    }

    /// Most bytes that were alive at once.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Working space was held beside everything else for a while.
    pub fn visit(&mut self, bytes: u64) {
        self.peak = self.peak.max(self.live + bytes);
    }

    /// A value is held in one more place. `foreign` are addresses of buffers that are not to be counted.
    pub fn hold(&mut self, value: &Value, foreign: &[usize]) -> Result<(), Fault> {
        match value {
            Value::Array(a) => self.hold_array(a, foreign),
            other => {
                for a in other.arrays() {
                    self.hold_array(a, foreign);
                }
            }
        }
        self.peak = self.peak.max(self.live);
        if self.live > self.limit {
            return Err(Fault::TooLarge { needed: self.live, limit: self.limit });
        }
        Ok(())
    }

    fn hold_array(&mut self, array: &Array, foreign: &[usize]) {
        let bytes = array.bytes();
        if bytes == 0 {
            return;
        }
        let address = array.storage().address();
        match self.held.get_mut(&address) {
            Some((holders, _)) => *holders += 1,
            None if foreign.contains(&address) => {}
            None => {
                self.held.insert(address, (1, bytes));
                self.live += bytes as u64;
            }
        }
    }

    /// A buffer is held in one place less.
    pub fn release(&mut self, address: usize) {
        if let Some((holders, bytes)) = self.held.get_mut(&address) {
            *holders -= 1;
            if *holders == 0 {
                self.live -= *bytes as u64;
                self.held.remove(&address);
            }
        }
    }

    /// A value is held in one place less.
    pub fn release_value(&mut self, value: &Value) {
        match value {
            Value::Array(a) => self.release(a.storage().address()),
            other => other.arrays().iter().for_each(|a| self.release(a.storage().address())),
        }
    }
}
