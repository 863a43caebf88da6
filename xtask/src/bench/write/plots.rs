//! The plots of the report, as SVG.

use plotters::chart::SeriesLabelPosition;
use plotters::coord::combinators::IntoLogRange as _;
use plotters::prelude::{
    BLACK, ChartBuilder, Circle, IntoDrawingArea as _, LineSeries, PathElement, RGBColor,
    SVGBackend, WHITE,
};
use plotters::style::Color as _;

use super::super::cells::{Mode, Test, shown};
use super::super::contender::Contender;
use super::super::metric::Metric;
use super::super::results::{Results, Row};
use super::tables::short;

/// A plot.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    name: &'static str,
    pub(super) title: &'static str,
    pub(super) svg: String,
}

impl Plot {
    /// Its file beside the report.
    pub(super) fn file(&self) -> String {
        format!("{}.svg", self.name)
    }
}

const PIXELS: (u32, u32) = (900, 480);

/// Share of the width that the names of the lines take.
const NAMES_SHARE: f64 = 0.22;

/// A line of a plot.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    contender: Contender,
    /// Places along x, as numbers in the order in which they stand there, with values.
    points: Vec<(usize, f64)>,
}

/// What a plot shows.
struct Content {
    x: &'static str,
    y: &'static str,
    /// What stands along x, evenly: a number, a size, a percentile.
    places: Vec<(usize, String)>,
    lines: Vec<Line>,
}

/// Every plot that the results have points for.
///
/// # Errors
/// When one cannot be drawn.
pub(super) fn all(results: &Results) -> Result<Vec<Plot>, String> {
    let plots = [
        (
            "latency",
            "Round trip, median",
            by_size(results, Test::Lat, Metric::P50Us, "microseconds"),
        ),
        (
            "throughput",
            "One-way stream",
            by_size(results, Test::Bw, Metric::MessagesPerSecond, "messages a second"),
        ),
        (
            "distribution",
            "Round trips of 64 bytes, distribution",
            distribution(results, "lat 64 B"),
        ),
        ("fanout", "Fan-out of 64 bytes", fanout(results)),
    ];
    let shown = plots.into_iter().filter(|(_, _, content)| !content.lines.is_empty());
    shown
        .map(|(name, title, content)| Ok(Plot { name, title, svg: draw(title, &content)? }))
        .collect()
}

fn by_size(results: &Results, test: Test, metric: Metric, y: &'static str) -> Content {
    let rows: Vec<&Row> = rows(results, test).collect();
    let lines = lines(&rows, |row, contender| Some((row.size, row.median(contender, metric)?)));
    let places = places(rows.iter().map(|row| (row.size, shown(row.size))));
    Content { x: "size of a message", y, places, lines }
}

fn fanout(results: &Results) -> Content {
    let rows: Vec<&Row> = rows(results, Test::Fanout).filter(|row| row.size == 64).collect();
    let rate = Metric::MessagesPerSecond;
    let lines = lines(&rows, |row, contender| Some((row.peers, row.median(contender, rate)?)));
    let places = places(rows.iter().map(|row| (row.peers, row.peers.to_string())));
    Content { x: "subscribers", y: "deliveries a second", places, lines }
}

fn places(all: impl Iterator<Item = (usize, String)>) -> Vec<(usize, String)> {
    let mut places: Vec<(usize, String)> = all.collect();
    places.sort();
    places.dedup();
    places
}

fn rows(results: &Results, test: Test) -> impl Iterator<Item = &Row> {
    results.cells.iter().filter(move |row| row.test == test && row.mode == Mode::Sleeping)
}

fn lines(rows: &[&Row], point: impl Fn(&Row, Contender) -> Option<(usize, f64)>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        for entry in &row.contenders {
            let contender = entry.contender;
            let Some(point) = point(row, contender) else { continue };
            match lines.iter_mut().find(|line| line.contender == contender) {
                Some(line) => line.points.push(point),
                None => lines.push(Line { contender, points: vec![point] }),
            }
        }
    }
    lines
}

/// Percentiles in order, at whole numbers along x.
const PERCENTILES: [(Metric, &str); 6] = [
    (Metric::MinUs, "min"),
    (Metric::P50Us, "50 %"),
    (Metric::P90Us, "90 %"),
    (Metric::P99Us, "99 %"),
    (Metric::P99_9Us, "99.9 %"),
    (Metric::MaxUs, "max"),
];

fn distribution(results: &Results, cell: &str) -> Content {
    let entries = results.cell(cell).map(|row| (row, &row.contenders));
    let line = |row: &Row, contender: Contender| {
        let all = PERCENTILES.iter().enumerate();
        let points =
            all.filter_map(|(at, (metric, _))| Some((at, row.median(contender, *metric)?)));
        Line { contender, points: points.collect() }
    };
    let lines = entries.map_or_else(Vec::new, |(row, entries)| {
        let all = entries.iter().map(|entry| line(row, entry.contender));
        all.filter(|line| !line.points.is_empty()).collect()
    });
    let places = PERCENTILES.iter().map(|(_, name)| (*name).to_owned()).enumerate().collect();
    Content { x: "round trips not longer", y: "microseconds", places, lines }
}

fn draw(title: &str, content: &Content) -> Result<String, String> {
    let mut svg = String::new();
    draw_into(&mut svg, title, content).map_err(|error| format!("{title}: {error}"))?;
    Ok(svg)
}

fn draw_into(
    svg: &mut String,
    title: &str,
    content: &Content,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, PIXELS).into_drawing_area();
    area.fill(&WHITE)?;
    let (low, high) = span(&content.lines);
    let places = content.places.len() as f64;
    // Behind the last place there is room for the names.
    let along = -0.2..(places - 0.8) * (1.0 + NAMES_SHARE);
    let mut builder = ChartBuilder::on(&area);
    builder.caption(title, ("sans-serif", 20)).margin(12);
    builder.x_label_area_size(44).y_label_area_size(84);
    let mut chart = builder.build_cartesian_2d(along, (low / 1.3..high * 1.3).log_scale())?;
    let (x_label, y_label) = (|at: &f64| place(content, *at), |value: &f64| short(*value));
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(content.x).y_desc(content.y).light_line_style(WHITE);
    mesh.x_labels(content.places.len() + 2).x_label_formatter(&x_label);
    mesh.y_label_formatter(&y_label).draw()?;
    for line in &content.lines {
        let (color, points) = (color(line.contender), points(content, line));
        let width = if line.contender == Contender::Fabric { 3 } else { 1 };
        let series = LineSeries::new(points.clone(), color.stroke_width(width));
        let label = chart.draw_series(series)?.label(line.contender.name());
        label.legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
        let dots = points.into_iter().map(|point| Circle::new(point, width + 1, color.filled()));
        chart.draw_series(dots)?;
    }
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE.mix(0.8));
    labels.border_style(BLACK.mix(0.2)).draw()?;
    area.present()?;
    Ok(())
}

fn points(content: &Content, line: &Line) -> Vec<(f64, f64)> {
    let at = |x: usize| content.places.iter().position(|(place, _)| *place == x);
    let points = line.points.iter().filter_map(|(x, y)| Some((at(*x)? as f64, *y)));
    points.collect()
}

/// What stands at a place along x; nothing between two places.
fn place(content: &Content, at: f64) -> String {
    let between = (at - at.round()).abs() > 0.01 || at < 0.0;
    let place = if between { None } else { content.places.get(at.round() as usize) };
    place.map_or_else(String::new, |(_, name)| name.clone())
}

/// Smallest and largest value, both over zero.
fn span(lines: &[Line]) -> (f64, f64) {
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| *value));
    let (low, high) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low.clamp(f64::MIN_POSITIVE, high), high)
}

/// Ours stands out; plain sockets are grey.
fn color(contender: Contender) -> RGBColor {
    match contender {
        Contender::Fabric => RGBColor(0xd6, 0x27, 0x28),
        Contender::FabricMany => RGBColor(0xff, 0x98, 0x96),
        Contender::RawTcp => RGBColor(0x77, 0x77, 0x77),
        Contender::RawTcpBusy => RGBColor(0xaa, 0xaa, 0xaa),
        Contender::RawTcpBatch => RGBColor(0x22, 0x22, 0x22),
        Contender::Libzmq => RGBColor(0x1f, 0x77, 0xb4),
        Contender::Nng => RGBColor(0x9b, 0x59, 0xb6),
        Contender::Zeromq => RGBColor(0x2c, 0xa0, 0x2c),
        Contender::Rzmq => RGBColor(0xff, 0x7f, 0x0e),
        Contender::FiPingpongTcp | Contender::FiPingpongShm => RGBColor(0x8c, 0x56, 0x4b),
        Contender::Iceoryx2 | Contender::Iceoryx2Loan => RGBColor(0x17, 0xbe, 0xcf),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::results;
    use super::*;

    #[test]
    fn each_question_has_its_plot_with_everybody_in_it() {
        let plots = all(&results()).unwrap();
        let files: Vec<String> = plots.iter().map(Plot::file).collect();
        assert_eq!(files, ["latency.svg", "throughput.svg", "distribution.svg", "fanout.svg"]);
        for plot in &plots {
            assert!(plot.svg.starts_with("<svg") && plot.svg.trim_end().ends_with("</svg>"));
            assert!(plot.svg.contains("fabric") && plot.svg.contains("libzmq"), "{}", plot.title);
        }
        assert!(plots[0].svg.contains("64 KiB") && plots[2].svg.contains("90 %"));
    }

    #[test]
    fn nothing_measured_is_nothing_drawn() {
        let mut results = results();
        results.cells.clear();
        assert!(all(&results).unwrap().is_empty());
    }
}
