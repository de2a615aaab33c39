//! Markdown tables, aligned so that they can be read in a terminal as well.

/// Rows below a heading, as a Markdown table. Numbers are to be formatted by the caller.
pub(crate) fn markdown(heading: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        let named = heading.get(column).map_or(0, |name| name.chars().count());
        cells.chain([named, 3]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = widths.iter().zip(cells).map(|(width, cell)| format!("{cell:<width$}"));
        format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
    };
    let mut table = line(&mut heading.iter().copied());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    table.push_str(&line(&mut rules.iter().map(String::as_str)));
    for row in rows {
        table.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows =
            [vec!["a".to_owned(), "1".to_owned()], vec!["longer".to_owned(), "2".to_owned()]];
        let wanted = "| name   | n   |\n| ------ | --- |\n| a      | 1   |\n| longer | 2   |\n";
        assert_eq!(markdown(&["name", "n"], &rows), wanted);
    }
}
