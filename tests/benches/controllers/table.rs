//! This file prints figures side by side: the medians of what both controllers needed, and of their ratios in each round.

use std::collections::BTreeMap;

use crate::child::Way;

/// What was measured: by its name, for both ways, in every round.
#[derive(Default)]
pub(crate) struct Table(Vec<(String, BTreeMap<Way, Vec<f64>>)>);

impl Table {
    /// One more measurement, in the unit that its name says.
    pub(crate) fn add(&mut self, way: Way, what: &str, figure: f64) {
        let row = self.0.iter().position(|(name, _)| name == what);
        let row = row.unwrap_or_else(|| {
            self.0.push((what.to_owned(), BTreeMap::new()));
            self.0.len() - 1
        });
        self.0[row].1.entry(way).or_default().push(figure);
    }

    pub(crate) fn print(&self, title: &str) {
        println!("\n### {title}\n");
        println!("| what | ratio to by hand | OKT | by hand |\n|---|---|---|---|");
        for (what, figures) in &self.0 {
            let of = |way| figures.get(&way).map_or(&[][..], Vec::as_slice);
            let (okt, by_hand) = (of(Way::WithOkt), of(Way::ByHand));
            // The two of a round ran one after the other: what else the machine did then met both.
            let pairs = okt
                .iter()
                .zip(by_hand)
                .filter(|(_, by_hand)| **by_hand != 0.0);
            let ratios: Vec<f64> = pairs.map(|(okt, by_hand)| okt / by_hand).collect();
            let ratio = if ratios.is_empty() {
                "–".to_owned()
            } else {
                format!("{:.2}", median(&ratios))
            };
            let (okt, by_hand) = (median(okt), median(by_hand));
            println!(
                "| {what} | {ratio} | {} | {} |",
                digits(okt),
                digits(by_hand)
            );
        }
    }
}

fn digits(figure: f64) -> String {
    if figure == 0.0 || figure >= 100.0 {
        format!("{figure:.0}")
    } else {
        format!("{figure:.2}")
    }
}

fn median(figures: &[f64]) -> f64 {
    if figures.is_empty() {
        return f64::NAN;
    }
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}
