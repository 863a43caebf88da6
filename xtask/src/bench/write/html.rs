//! The report as one page that needs nothing else.

use super::super::results::Results;
use super::plots::Plot;
use super::tables::{self, Table};

const STYLE: &str = "\
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1em 0; }
th, td { border-bottom: 1px solid #ddd; padding: .15em .6em; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
tr:hover { background: #f4f4f4; }
.bad { color: #b00020; font-weight: bold; }
.good { color: #1b7f3b; }
.scroll { overflow-x: auto; }
svg { max-width: 100%; height: auto; }
";

/// Everything, with the plots in place.
pub(super) fn report(results: &Results, plots: &[Plot]) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Benchmark</title>\
         \n<style>\n{STYLE}</style></head><body>\n<h1>Benchmark</h1>\n<p>{}</p>\n",
        escaped(&tables::circumstances(results))
    );
    text += &section("Targets", &table(&tables::targets(results)));
    for plot in plots {
        text += &section(plot.title, &plot.svg);
    }
    for (title, figures) in tables::figures(results) {
        text += &section(title, &table(&figures));
    }
    let left_out = tables::left_out(results);
    if !left_out.is_empty() {
        let lines = left_out.iter().map(|line| format!("<li>{}</li>\n", escaped(line)));
        text += &section("Left out", &format!("<ul>\n{}</ul>", lines.collect::<String>()));
    }
    text + "</body></html>\n"
}

fn section(title: &str, content: &str) -> String {
    format!("<h2>{}</h2>\n<div class=\"scroll\">{content}</div>\n", escaped(title))
}

fn table(table: &Table) -> String {
    let head = table.head.iter().map(|cell| format!("<th>{}</th>", escaped(cell)));
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().map(|cell| format!("<td{}>{}</td>", class(cell), escaped(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    });
    format!(
        "<table><thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table>",
        head.collect::<String>(),
        rows.collect::<String>()
    )
}

fn class(cell: &str) -> &'static str {
    match cell {
        "NOT MET" => " class=\"bad\"",
        "met" | "met, and the aim" => " class=\"good\"",
        _ => "",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::testing::results;
    use super::*;

    #[test]
    fn what_programs_say_is_no_markup() {
        let page = report(&results(), &[]);
        assert!(page.contains("it &lt;broke&gt;") && !page.contains("<broke>"));
        assert_eq!(page.matches("<table>").count(), page.matches("</table>").count());
        assert!(page.ends_with("</body></html>\n"));
    }
}
