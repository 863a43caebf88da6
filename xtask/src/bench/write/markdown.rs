//! The report in Markdown.

use super::super::results::Results;
use super::plots::Plot;
use super::tables::{self, Table};

/// Everything, with links to the plots beside it.
pub(super) fn report(results: &Results, plots: &[Plot]) -> String {
    let mut text = format!("# Benchmark\n\n{}\n", tables::circumstances(results));
    text += &format!("\n## Targets\n\n{}", table(&tables::targets(results)));
    for plot in plots {
        text += &format!("\n![{}]({})\n", plot.title, plot.file());
    }
    for (title, figures) in tables::figures(results) {
        text += &format!("\n## {title}\n\n{}", table(&figures));
    }
    let left_out = tables::left_out(results);
    if !left_out.is_empty() {
        text += "\n## Left out\n\n";
        text += &left_out.iter().map(|line| format!("- {line}\n")).collect::<String>();
    }
    text
}

fn table(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_owned(); table.head.len()];
    let rows = table.rows.iter().map(|row| line(row)).collect::<String>();
    line(&table.head) + &line(&rule) + &rows
}

#[cfg(test)]
mod tests {
    use super::super::testing::results;
    use super::*;

    #[test]
    fn every_table_has_its_rule() {
        let text = report(&results(), &[]);
        assert!(text.contains("## Targets\n\n| cell | figure |"), "{text}");
        assert_eq!(text.matches("\n| --- |").count(), 5, "{text}");
        assert!(text.contains("## Left out\n\n- "));
    }
}
