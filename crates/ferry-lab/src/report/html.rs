//! HTML elements: escaped text, links, lists of terms, scrolling tables.

use crate::table::Table;
pub(super) use ferry_trace::export::escaped;

/// A sentence. Figures are not parted from their percent signs.
pub(super) fn sentence(text: &str) -> String {
    escaped(text).replace(" %", "\u{a0}%")
}

/// A link within the page.
pub(super) fn link(id: &str, text: &str) -> String {
    format!("<a href=\"#{id}\">{}</a>", escaped(text))
}

/// A list of terms. Empty values are left out. Values are HTML.
pub(super) fn terms<'t>(terms: impl IntoIterator<Item = (&'t str, String)>) -> String {
    let mut out = String::from("<dl>\n");
    for (term, value) in terms.into_iter().filter(|(_, value)| !value.is_empty()) {
        out += &format!("<div><dt>{}</dt><dd>{value}</dd></div>\n", escaped(term));
    }
    out + "</dl>\n"
}

/// A box that scrolls sideways by touch and, once focused, by keys.
pub(super) fn scrolling(label: &str, content: &str) -> String {
    format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">\n{content}</div>\n",
        escaped(label)
    )
}

/// A table of HTML. The first column names the rows.
pub(super) struct Grid {
    id: String,
    caption: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// A table without rows.
    pub(super) fn new(id: &str, caption: &str) -> Self {
        Self { id: id.to_owned(), caption: escaped(caption), columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds headings, as text.
    pub(super) fn columns<'c>(&mut self, names: impl IntoIterator<Item = &'c str>) {
        self.columns.extend(names.into_iter().map(escaped));
    }

    /// Adds a row, as HTML.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the table in its box.
    pub(super) fn html(&self) -> String {
        let Self { id, caption, .. } = self;
        let head: String = (0..self.columns.len()).map(|index| self.heading(index)).collect();
        let body: String = self.rows.iter().map(|row| self.line(row)).collect();
        format!(
            "<div class=\"scroll\" role=\"region\" aria-labelledby=\"{id}\" tabindex=\"0\">\n<table>\n<caption \
             id=\"{id}\"><span>{caption}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n\
             </table>\n</div>\n"
        )
    }

    /// Headings of columns with words only are aligned with the words.
    fn heading(&self, index: usize) -> String {
        let name = self.columns.get(index).map(String::as_str).unwrap_or_default();
        let mut cells = self.rows.iter().filter_map(|row| row.get(index)).filter(|cell| !cell.is_empty());
        let class = if cells.all(|cell| is_words(cell)) { " class=\"words\"" } else { "" };
        if name.is_empty() {
            format!("<td{class}></td>")
        } else {
            format!("<th scope=\"col\"{class}>{name}</th>")
        }
    }

    /// A text followed by empty cells spans them.
    fn line(&self, cells: &[String]) -> String {
        let used = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        let mut out = String::from("<tr>");
        for (index, cell) in cells.iter().enumerate() {
            let words = is_words(cell);
            if index == 0 {
                // Long names break after a slash.
                let name = if cell.contains('<') { cell.clone() } else { cell.replace('/', "/<wbr>") };
                out += &format!("<th scope=\"row\"><span>{name}</span>");
            } else if index + 1 == used && words && used < self.columns.len() {
                out += &format!("<td class=\"words\" colspan=\"{}\">{cell}", self.columns.len() - index);
                break;
            } else if words {
                out += &format!("<td class=\"words\">{cell}");
            } else {
                out += &format!("<td>{cell}");
            }
        }
        out + "\n"
    }
}

/// Returns true if the cell does not begin with a figure.
fn is_words(cell: &str) -> bool {
    cell.chars().next().is_some_and(|first| !first.is_ascii_digit() && first != '-')
}

/// A table of text.
pub(super) fn table(id: &str, table: &Table) -> String {
    let mut grid = Grid::new(id, &table.title);
    grid.columns(table.columns.iter().map(String::as_str));
    table.rows.iter().for_each(|row| grid.row(row.iter().map(|cell| escaped(cell))));
    let notes: String =
        table.notes.iter().map(|note| format!("<p class=\"note\">{}</p>\n", escaped(note))).collect();
    if table.rows.is_empty() {
        return format!("<p id=\"{id}\"><strong>{}</strong></p>\n{notes}", escaped(&table.title));
    }
    format!("<div>\n{}{notes}</div>\n", grid.html())
}

/// Presentation of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Open at first, and never printed.
    OnScreen,
    /// Folded at first, and printed.
    Printed,
    /// Folded at first, and printed only if the reader has opened it.
    Folded,
}

/// A part that can be folded.
pub(super) fn part(id: &str, title: &str, shown: Shown, content: &str) -> String {
    let attributes = match shown {
        Shown::OnScreen => "class=\"screen\" open",
        Shown::Printed => "class=\"printed\"",
        Shown::Folded => "class=\"part\"",
    };
    let title = escaped(title);
    format!("<details {attributes}><summary><h3 id=\"{id}\">{title}</h3></summary>\n{content}</details>\n")
}
