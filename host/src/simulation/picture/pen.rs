//! SVG as text.

use std::fmt::Write as _;

/// How wide a letter of the ordinary size is, about.
const LETTER: f64 = 5.6;

/// Draws.
#[derive(Debug, Default)]
pub(super) struct Pen {
    svg: String,
}

/// A rectangle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Pen {
    fn line(&mut self, line: &str) {
        // Writing to a string does not fail.
        writeln!(self.svg, "{line}").unwrap_or_default();
    }

    /// A filled area. A reader who points at the area is told what it is.
    pub(super) fn area(&mut self, area: Area, style: &str, told: &str) {
        let Area { x, y, width, height } = area;
        let title = match told {
            "" => "/>".to_owned(),
            told => format!("><title>{}</title></rect>", escaped(told)),
        };
        self.line(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {style}{title}"
        ));
    }

    /// A straight line.
    pub(super) fn stroke(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.line(&format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>"
        ));
    }

    /// A text that begins there.
    pub(super) fn text(&mut self, x: f64, y: f64, style: &str, text: &str) {
        self.line(&format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escaped(text)));
    }

    /// A small shape around a point, by its path from there.
    pub(super) fn shape(&mut self, x: f64, y: f64, path: &str, style: &str, told: &str) {
        self.line(&format!(
            "<path transform=\"translate({x:.1},{y:.1})\" d=\"{path}\" {style}>\
             <title>{}</title></path>",
            escaped(told)
        ));
    }

    /// The whole picture.
    pub(super) fn picture(self, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
            self.svg
        )
    }
}

/// As much of a text as has room; nothing of one that would be a few letters.
pub(super) fn fitting(text: &str, room: f64) -> String {
    const FEWEST: usize = 4;
    let letters = (room / LETTER) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let Some(kept) = letters.checked_sub(1).filter(|kept| *kept >= FEWEST) else {
        return String::new();
    };
    text.chars().take(kept).chain(['…']).collect()
}

/// A text in lines of so many letters.
pub(super) fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.len() + word.len() < letters) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
