//! Columns of text that comes from others.

use crate::cli::colour::{Colour, Paint};
use crate::plain_text;

/// What stands between two columns.
const GAP: usize = 2;

/// One text of a row, with nothing in it that a terminal obeys.
#[derive(Debug)]
pub(super) struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    pub(super) fn plain(text: &str) -> Self {
        Cell::coloured(text, None)
    }

    pub(super) fn coloured(text: &str, colour: Option<Colour>) -> Self {
        let mut plain = String::with_capacity(text.len());
        text.chars().for_each(|character| plain_text::push(&mut plain, character));
        Cell { text: plain, colour }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// Rows below a head, each column as wide as its widest cell.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(head: &[&str]) -> Self {
        Table { rows: vec![head.iter().map(|it| Cell::plain(it)).collect()] }
    }

    pub(super) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    pub(super) fn lines(&self, paint: Paint) -> Vec<String> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        self.rows.iter().map(|row| line(row, &widths, paint)).collect()
    }
}

fn line(row: &[Cell], widths: &[usize], paint: Paint) -> String {
    let (mut line, mut blanks) = (String::new(), 0);
    for (cell, width) in row.iter().zip(widths) {
        if !cell.text.is_empty() {
            line.extend(std::iter::repeat_n(' ', std::mem::take(&mut blanks)));
            match cell.colour {
                Some(colour) => line.push_str(&paint.paint(colour, &cell.text)),
                None => line.push_str(&cell.text),
            }
        }
        // Only what something follows is filled up.
        blanks += width - cell.width() + GAP;
    }
    line
}
