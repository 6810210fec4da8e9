//! A table of the figures of two sides: the medians, and the ratios of each round.

use std::collections::BTreeMap;

/// The measurements: by name, for both sides, in every round.
pub struct Table {
    /// The measured side, and the side that it is compared with.
    sides: [&'static str; 2],
    rows: Vec<(String, BTreeMap<&'static str, Vec<f64>>)>,
}

impl Table {
    /// Creates an empty table of two sides, the measured one first.
    pub fn of(sides: [&'static str; 2]) -> Self {
        Self {
            sides,
            rows: Vec::new(),
        }
    }

    /// Adds a measurement, in the unit that its name contains.
    pub fn add(&mut self, side: &'static str, what: &str, figure: f64) {
        let known_row = self.rows.iter().position(|(name, _)| name == what);
        let row = known_row.unwrap_or_else(|| {
            self.rows.push((what.to_owned(), BTreeMap::new()));
            self.rows.len() - 1
        });
        self.rows[row].1.entry(side).or_default().push(figure);
    }

    /// Returns the median of the measurements of one side.
    pub fn median(&self, side: &str, what: &str) -> Option<f64> {
        let (_, figures) = self.rows.iter().find(|(name, _)| name == what)?;
        median(figures.get(side)?)
    }

    /// Returns both sides, the measured one first.
    pub(super) fn sides(&self) -> [&'static str; 2] {
        self.sides
    }

    /// Adds the measurements of another table of the same sides.
    pub(super) fn extend(&mut self, other: Self) {
        for (what, figures) in other.rows {
            for (side, figures) in figures {
                for figure in figures {
                    self.add(side, &what, figure);
                }
            }
        }
    }

    /// Returns the ratio of each measurement in one line.
    pub(super) fn ratios(&self) -> String {
        let [judged, other] = self.sides;
        let of = |figures: &BTreeMap<_, Vec<f64>>, side| median(figures.get(side)?);
        let ratios = self.rows.iter().filter_map(|(what, figures)| {
            let (ours, theirs) = (of(figures, judged)?, of(figures, other)?);
            (theirs != 0.0).then(|| format!("{what} {:.2}", ours / theirs))
        });
        ratios.collect::<Vec<_>>().join(" · ")
    }

    /// Prints the table as Markdown.
    pub fn print(&self, title: &str) {
        let [judged, other] = self.sides;
        println!("\n### {title}\n");
        println!("| what | ratio to {other} | {judged} | {other} |\n|---|---|---|---|");
        for (what, figures) in &self.rows {
            let of = |side| figures.get(side).map_or(&[][..], Vec::as_slice);
            let (ours, theirs) = (of(judged), of(other));
            // The two runs of a round follow each other, so that other load of the machine affects both.
            let pairs = ours
                .iter()
                .zip(theirs)
                .filter(|(_, theirs)| **theirs != 0.0);
            let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
            println!(
                "| {what} | {} | {} | {} |",
                median(&ratios).map_or_else(none, |ratio| format!("{ratio:.2}")),
                median(ours).map_or_else(none, digits),
                median(theirs).map_or_else(none, digits),
            );
        }
    }
}

fn none() -> String {
    "–".to_owned()
}

fn digits(figure: f64) -> String {
    if figure == 0.0 || figure >= 100.0 {
        format!("{figure:.0}")
    } else {
        format!("{figure:.2}")
    }
}

fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, sorted[middle])
    })
}
