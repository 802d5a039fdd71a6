//! A run as a picture, for somebody who looks for what went wrong: time from left to right, the hosts
//! below each other with what was done to them, and for each participant its calls, its znode's place
//! in the line and what it held. Where it broke is a line from top to bottom; what led there is
//! numbered, and told below.
//!
//! Code map:
//! - `scene`: what there is to see; `scale`: where times are; `pen`: SVG

mod pen;
mod scale;
mod scene;

use super::history::Entry;
use super::invariants;
use super::judges::Violation;
use super::timeline;
use crate::guest::Judge;
use pen::{Area, Pen, fitting, wrapped};
use scale::Scale;
use scene::{Bar, Group, Kind, Lane, Moment, Point, Scene, Who};

const LEFT: f64 = 120.0;
const WIDTH: f64 = 1_240.0;
const RIGHT: f64 = 90.0;
/// The text beside a bar, and the bar.
const ROW: f64 = 24.0;
const BAR: f64 = 9.0;
const HEADER: f64 = 22.0;
const LINE: f64 = 15.0;
const LETTERS: usize = 210;

/// A row with more bars or marks than this is crowded: what lies upon something of its kind is left
/// out there, since a component that goes round in a circle makes tens of thousands.
const MOST_IN_A_ROW: usize = 500;
/// What is closer than this lies upon the other, in pixels.
const CLOSE: f64 = 1.5;

const RED: &str = "#c00000";

/// The picture, as SVG. The judge says what was promised.
pub fn svg(history: &[Entry], violation: Option<&Violation>, judge: Option<&Judge>) -> String {
    let scene = Scene::of(history, violation);
    let scale = Scale::new(&scene.moments, LEFT, WIDTH);
    let mut pen = Pen::default();
    let mut y = LINE + 4.0;
    for (style, text) in title(history, violation, judge) {
        pen.text(10.0, y, style, &text);
        y += LINE;
    }
    legend(&mut pen, y);
    y += 2.0 * LINE + HEADER;
    let top = y;
    let mut drawing = Drawing { pen, scale, scene: &scene, rows: Vec::new(), left_out: 0 };
    for group in &scene.groups {
        y = drawing.group(group, y);
    }
    drawing.axis(top, y);
    drawing.breaking(violation, top, y);
    y = drawing.marks(top, y);
    y = drawing.omission(y);
    drawing.pen.picture(LEFT + WIDTH + RIGHT, y + LINE)
}

fn title(
    history: &[Entry],
    violation: Option<&Violation>,
    judge: Option<&Judge>,
) -> Vec<(&'static str, String)> {
    let Some(violation) = violation else {
        return vec![("font-size=\"14\" font-weight=\"bold\"", "Nothing was broken".to_owned())];
    };
    let sentence = timeline::in_short(history, &violation.sentence);
    let sentence = format!("{}: {sentence}", violation.invariant);
    let sentence = wrapped(&sentence, LETTERS * 3 / 4).into_iter();
    let bold = "font-size=\"14\" font-weight=\"bold\" fill=\"#c00000\"";
    let mut lines: Vec<_> = sentence.map(|line| (bold, line)).collect();
    let promises = invariants::promises(&violation.invariant, judge).into_iter();
    lines.extend(promises.flat_map(|it| wrapped(&it, LETTERS)).map(|line| ("", line)));
    lines
}

/// What the colours mean.
fn legend(pen: &mut Pen, y: f64) {
    let mut x = 10.0;
    let kinds = [
        (Kind::Call, "a call"),
        (Kind::InLine, "a znode in line"),
        (Kind::First, "the first of its line"),
        (Kind::Holds, "believes that it holds"),
        (Kind::Fault, "a fault"),
    ];
    for (kind, text) in kinds {
        let area = Area { x, y: y - BAR, width: 22.0, height: BAR };
        pen.area(area, style(kind), "");
        pen.text(x + 27.0, y, "", text);
        x += 45.0 + 6.0 * text.len() as f64;
    }
    let moments = [
        (Moment::Asks, "asks the host"),
        (Moment::Wakes, "is woken"),
        (Moment::Writes, "writes under its fence"),
        (Moment::IsRefused, "is refused"),
        (Moment::Says, "says something"),
        (Moment::Loses, "loses or fails"),
    ];
    for (moment, text) in moments {
        let (path, style) = glyph(moment);
        pen.shape(x + 5.0, y - 4.0, path, style, text);
        pen.text(x + 14.0, y, "", text);
        x += 32.0 + 6.0 * text.len() as f64;
    }
}

fn style(kind: Kind) -> &'static str {
    match kind {
        Kind::Call => "fill=\"#9ec5fe\" stroke=\"#5b8bd0\" stroke-width=\"0.6\"",
        Kind::InLine => "fill=\"#fff3c4\" stroke=\"#d9b54a\" stroke-width=\"0.6\"",
        Kind::First => "fill=\"#f2b32c\"",
        Kind::Holds => "fill=\"#3aa655\"",
        Kind::Fault => "fill=\"#e06666\" fill-opacity=\"0.45\"",
    }
}

/// A small shape around the point, and its style.
fn glyph(moment: Moment) -> (&'static str, &'static str) {
    match moment {
        Moment::Asks => ("M0,-4 V4", "stroke=\"#35507a\" stroke-width=\"1\""),
        Moment::Wakes => ("M-4,4 L4,4 L0,-4 Z", "fill=\"#7a3fb0\""),
        Moment::Writes => ("M-2,-4 H2 V4 H-2 Z", "fill=\"#145a28\""),
        Moment::IsRefused => ("M-3,-4 L3,4 M3,-4 L-3,4", "stroke=\"#145a28\" stroke-width=\"1.6\""),
        Moment::Says => ("M0,-5 L5,0 L0,5 L-5,0 Z", "fill=\"#2a7f9e\""),
        Moment::Loses => ("M-4,-4 L4,4 M4,-4 L-4,4", "stroke=\"#c00000\" stroke-width=\"2\""),
        Moment::Commits => ("M0,-4 V4", "stroke=\"#777777\" stroke-width=\"1.4\""),
    }
}

struct Drawing<'a> {
    pen: Pen,
    scale: Scale,
    scene: &'a Scene,
    /// Where everybody is.
    rows: Vec<(Who, f64)>,
    /// How many bars and marks are not drawn.
    left_out: usize,
}

impl Drawing<'_> {
    /// Draws a host and its participants, from there on. Answers where it ends.
    fn group(&mut self, group: &Group, top: f64) -> f64 {
        let name = group.host.map_or_else(|| "ensemble".to_owned(), |host| format!("host {host}"));
        let heights = group.lanes.iter().map(height);
        let bottom = top + HEADER + heights.sum::<f64>() + 6.0;
        let whole = Area { x: 4.0, y: top, width: LEFT + WIDTH, height: bottom - top - 3.0 };
        self.pen.area(whole, "fill=\"#f7f7f7\"", "");
        self.pen.text(10.0, top + 14.0, "font-weight=\"bold\"", &name);
        self.rows.push((group.host.map_or(Who::Ensemble, Who::Host), top + 10.0));
        for fault in &group.faults {
            let x = self.scale.x(fault.from_us);
            let width = (self.scale.x(fault.until_us) - x).max(2.0);
            let span = Area { x, y: top, width, height: bottom - top - 3.0 };
            self.pen.area(span, "fill=\"#e06666\" fill-opacity=\"0.22\"", &fault.text);
        }
        self.labels(&group.faults, top + 10.0, "fill=\"#c00000\"");
        self.points(&group.points, top + 16.0);
        let commits: Vec<Bar> = group.points.iter().map(labelled).collect();
        let y = if group.faults.is_empty() { top + 12.0 } else { top + 20.0 };
        self.labels(&commits, y, "fill=\"#666666\" font-size=\"9\"");
        let mut y = top + HEADER;
        for lane in &group.lanes {
            self.lane(lane, y);
            y += height(lane);
        }
        bottom
    }

    fn lane(&mut self, lane: &Lane, top: f64) {
        let height = height(lane);
        let alive = Area {
            x: self.scale.x(lane.joined_us),
            y: top + 1.0,
            width: (self.scale.x(lane.ended_us) - self.scale.x(lane.joined_us)).max(1.0),
            height: height - 3.0,
        };
        let name = format!("participant {}", lane.id);
        let (ground, ink) = match lane.is_blamed {
            true => {
                ("fill=\"#f6b9b9\" fill-opacity=\"0.45\"", "font-weight=\"bold\" fill=\"#c00000\"")
            }
            false => ("fill=\"#c9c9d6\" fill-opacity=\"0.35\"", ""),
        };
        self.pen.area(alive, ground, &name);
        self.pen.text(16.0, top + 14.0, ink, &name);
        self.rows.push((Who::Participant(lane.id), top + 9.0));
        let mut y = top + 2.0;
        let rows =
            [(&lane.calls, &lane.asks), (&lane.places, &lane.wakes), (&lane.claims, &lane.deeds)];
        for (bars, points) in rows.into_iter().filter(|(bars, points)| has_row(bars, points)) {
            let mut crowd = Crowd::of(bars.len());
            for bar in bars {
                let x = self.scale.x(bar.from_us);
                // A claim that is told at the very break is what somebody looks for.
                let narrowest = if bar.kind == Kind::Holds { 8.0 } else { 2.0 };
                let width = (self.scale.x(bar.until_us) - x).max(narrowest);
                // What is seen to last is drawn in any case.
                if width <= narrowest && crowd.hides(bar.kind, x) {
                    self.left_out += 1;
                    continue;
                }
                let area = Area { x, y: y + 11.0, width, height: BAR };
                self.pen.area(area, style(bar.kind), &bar.text);
            }
            self.labels(bars, y + 9.0, "font-size=\"9.5\"");
            self.points(points, y + 15.5);
            y += ROW;
        }
    }

    fn points(&mut self, points: &[Point], y: f64) {
        let mut crowd = Crowd::of(points.len());
        for point in points {
            let x = self.scale.x(point.at_us);
            if crowd.hides(point.kind, x) {
                self.left_out += 1;
                continue;
            }
            let (path, style) = glyph(point.kind);
            let told = format!("{:.3} s: {}", point.at_us as f64 / 1e6, point.text);
            self.pen.shape(x, y, path, style, &told);
        }
    }

    /// What the bars of a row are, each where it begins, as far as there is room before the next.
    fn labels(&mut self, bars: &[Bar], y: f64, style: &str) {
        let mut taken = f64::MIN;
        for (index, bar) in bars.iter().enumerate() {
            let x = self.scale.x(bar.from_us);
            // The two parts of one znode's bar say the same.
            let is_same = |it: &Bar| it.text == bar.text && it.kind != bar.kind;
            let before = index.checked_sub(1).and_then(|before| bars.get(before));
            if x < taken || before.is_some_and(is_same) {
                continue;
            }
            let rest = bars.iter().skip(index + 1).filter(|next| !is_same(next));
            let next = rest.map(|next| self.scale.x(next.from_us)).find(|next| *next > x + 1.0);
            let room = next.unwrap_or(LEFT + WIDTH + RIGHT) - x - 4.0;
            let text = fitting(&bar.text, room);
            if !text.is_empty() {
                taken = x + 5.2 * text.chars().count() as f64;
                self.pen.text(x, y, style, &text);
            }
        }
    }

    fn axis(&mut self, top: f64, bottom: f64) {
        for at_us in self.scale.ticks() {
            let x = self.scale.x(at_us);
            let faint = "stroke=\"#000000\" stroke-opacity=\"0.12\"";
            self.pen.stroke((x, top), (x, bottom), faint);
            let text = format!("{} s", at_us as f64 / 1e6);
            self.pen.text(x + 2.0, top - 4.0, "fill=\"#555555\"", &text);
        }
        let cuts: Vec<_> = self.scale.cuts().collect();
        for (from, until, length_us) in cuts {
            let area = Area { x: from, y: top, width: until - from, height: bottom - top };
            let told = format!("{:.1} s in which nothing is to be seen", length_us as f64 / 1e6);
            self.pen.area(area, "fill=\"white\" fill-opacity=\"0.5\"", &told);
            for x in [from, until] {
                let edge = "stroke=\"#999999\" stroke-dasharray=\"2,3\"";
                self.pen.stroke((x, top), (x, bottom), edge);
            }
            let text = format!("+{:.1} s", length_us as f64 / 1e6);
            self.pen.text(from + 2.0, top - 16.0, "fill=\"#777777\" font-size=\"9\"", &text);
        }
    }

    fn breaking(&mut self, violation: Option<&Violation>, top: f64, bottom: f64) {
        let Some((violation, at_us)) = violation.zip(self.scene.broken_us) else { return };
        let x = self.scale.x(at_us);
        self.pen.stroke((x, top - 26.0), (x, bottom), "stroke=\"#c00000\" stroke-width=\"1.8\"");
        let text = format!("{} at {:.3} s", violation.invariant, at_us as f64 / 1e6);
        let style = "font-weight=\"bold\" fill=\"#c00000\" text-anchor=\"end\"";
        self.pen.text(x - 4.0, top - 27.0, style, &text);
    }

    /// Numbers what led to the break, and tells it below.
    fn marks(&mut self, top: f64, bottom: f64) -> f64 {
        let mut y = bottom + LINE;
        for (index, mark) in self.scene.marks.iter().enumerate() {
            let number = index + 1;
            let row = self.rows.iter().find(|(who, _)| *who == mark.who);
            let at = row.map_or(top, |(_, y)| *y);
            let x = self.scale.x(mark.at_us) - 9.0 * index as f64 % 36.0;
            let circle = "M-7,0 a7,7 0 1,0 14,0 a7,7 0 1,0 -14,0";
            let style = format!("fill=\"white\" stroke=\"{RED}\" stroke-width=\"1.4\"");
            self.pen.shape(x, at, circle, &style, &mark.line);
            let ink = format!(
                "text-anchor=\"middle\" font-size=\"10\" font-weight=\"bold\" fill=\"{RED}\""
            );
            self.pen.text(x, at + 3.5, &ink, &number.to_string());
            self.pen.text(10.0, y, "", &format!("{number}   {}", mark.line));
            y += LINE;
        }
        y
    }

    /// Says how much is not drawn.
    fn omission(&mut self, y: f64) -> f64 {
        if self.left_out == 0 {
            return y;
        }
        let text = format!(
            "{} bars and marks are left out: each lies upon one of its kind that is drawn",
            self.left_out
        );
        self.pen.text(10.0, y, "fill=\"#555555\"", &text);
        y + LINE
    }
}

/// Tells in a crowded row what lies upon something of its kind that was drawn. They come from left
/// to right.
struct Crowd<K> {
    is_crowded: bool,
    /// Where the newest one of each kind is.
    drawn: Vec<(K, f64)>,
}

impl<K: PartialEq> Crowd<K> {
    /// In a row of so many.
    fn of(count: usize) -> Self {
        Crowd { is_crowded: count > MOST_IN_A_ROW, drawn: Vec::new() }
    }

    fn hides(&mut self, kind: K, x: f64) -> bool {
        if !self.is_crowded {
            return false;
        }
        let Some((_, newest)) = self.drawn.iter_mut().find(|(it, _)| *it == kind) else {
            self.drawn.push((kind, x));
            return false;
        };
        let is_close = x - *newest < CLOSE;
        if !is_close {
            *newest = x;
        }
        is_close
    }
}

/// A point's text, as that of a bar without length.
fn labelled(point: &Point) -> Bar {
    let Point { at_us, text, .. } = point;
    Bar { from_us: *at_us, until_us: *at_us, text: text.clone(), kind: Kind::Fault }
}

fn has_row(bars: &[Bar], points: &[Point]) -> bool {
    !bars.is_empty() || !points.is_empty()
}

fn height(lane: &Lane) -> f64 {
    let rows =
        [(&lane.calls, &lane.asks), (&lane.places, &lane.wakes), (&lane.claims, &lane.deeds)];
    let rows = rows.into_iter().filter(|(bars, points)| has_row(bars, points)).count();
    ROW * rows.max(1) as f64 + 4.0
}

#[cfg(test)]
mod tests;
