//! Parts of the window around the canvas, one file each. Functions of the session that return commands.

pub mod bars;
pub mod bottom;
pub mod browser;
pub mod inspector;
pub mod palette;
pub mod pipeline;
pub mod search;
pub mod shortcuts;
pub mod start;
pub mod widgets;

/// A count of bytes as people read it: bytes below 1 KiB, then KiB, MiB, GiB with three digits.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A count with thin spaces between groups of three digits.
pub fn count_text(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// A long name with its middle left out, at most `limit` characters.
pub fn shortened(name: &str, limit: usize) -> String {
    let length = name.chars().count();
    if length <= limit || limit < 5 {
        return name.to_owned();
    }
    let tail = (limit - 1) * 3 / 5;
    let head = limit - 1 - tail;
    let mut text: String = name.chars().take(head).collect();
    text.push('…');
    text.extend(name.chars().skip(length - tail));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_short() {
        let sizes = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.50 KiB"),
            (5 << 30, "5.00 GiB"),
            (217_000_000, "207 MiB"),
        ];
        for (bytes, text) in sizes {
            assert_eq!(bytes_text(bytes), text);
        }
        assert_eq!(count_text(50_000), "50\u{2009}000");
        assert_eq!(count_text(999), "999");
        assert_eq!(shortened("/encoder/layer.0/attention/self/MatMul", 12), "/enco…MatMul");
        assert_eq!(shortened("短い名前", 12), "短い名前");
    }
}
