//! Cells that have run, kept so that an interrupted run goes on where it was.

use std::fs;
use std::path::{Path, PathBuf};

use super::cell::Cell;
use super::grid::{ROWS, Row, STACKS, Stack};
use super::place::remove;

/// A file for each cell.
#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
}

impl Store {
    /// In a directory that need not exist yet.
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Keeps a cell in place of an earlier one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, cell: &Cell) -> Result<(), String> {
        let file = self.file(&cell.kernel, &cell.stack);
        let json = serde_json::to_string_pretty(cell).map_err(|error| error.to_string())?;
        fs::create_dir_all(&self.dir).map_err(|error| about(&self.dir, &error))?;
        fs::write(&file, json).map_err(|error| about(&file, &error))
    }

    /// Forgets a cell, if it is there.
    ///
    /// # Errors
    /// When it stays.
    pub(super) fn forget(&self, row: &Row, stack: &Stack) -> Result<(), String> {
        let file = self.file(row.name, stack.name);
        if file.exists() {
            fs::remove_file(&file).map_err(|error| about(&file, &error))?;
        }
        Ok(())
    }

    /// Whether a cell has run. What cannot be read has not.
    pub(super) fn has(&self, row: &Row, stack: &Stack) -> bool {
        self.cell(row, stack).is_some()
    }

    /// All cells that have run, row by row.
    pub(super) fn all(&self) -> Vec<Cell> {
        let of_row =
            |row: &'static Row| STACKS.iter().filter_map(move |stack| self.cell(row, stack));
        ROWS.iter().flat_map(of_row).collect()
    }

    fn cell(&self, row: &Row, stack: &Stack) -> Option<Cell> {
        let text = fs::read_to_string(self.file(row.name, stack.name)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn file(&self, row: &str, stack: &str) -> PathBuf {
        self.dir.join(format!("{row}_{stack}.json"))
    }
}

/// Forgets what an earlier guest wrote about a cell.
///
/// # Errors
/// When it stays.
pub(super) fn clear(results: &Path, stack: &Stack) -> Result<(), String> {
    remove(&results.join(stack.name))
}

fn about(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::super::cell::samples::good;
    use super::*;

    #[test]
    fn a_cell_is_kept_until_it_is_forgotten() {
        let dir = std::env::temp_dir().join(format!("store-{}", std::process::id()));
        let store = Store::new(dir.clone());
        let (row, stack) = (&ROWS[2], &STACKS[2]);
        assert!(!store.has(row, stack));
        let cell = good(row.name, stack.name);
        store.keep(&cell).unwrap();
        assert_eq!(store.all(), [cell]);
        store.forget(row, stack).unwrap();
        assert!(!store.has(row, stack) && store.forget(row, stack).is_ok());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn half_a_file_is_no_cell() {
        let dir = std::env::temp_dir().join(format!("half-{}", std::process::id()));
        let store = Store::new(dir.clone());
        store.keep(&good("5.10", "33")).unwrap();
        fs::write(dir.join("5.10_33.json"), "{\"kernel\": \"5.10\"").unwrap();
        assert!(!store.has(&ROWS[0], &STACKS[0]));
        fs::remove_dir_all(&dir).unwrap();
    }
}
