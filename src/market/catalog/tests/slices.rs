//! A list is applied in slices, and served all at once.

use super::*;

/// All that can be asked of these symbols, and of all.
fn served(catalog: &Catalog, texts: &[String]) -> String {
    let mut told = format!("{} {:?}", known(catalog), catalog.categories());
    told += &format!("{:?} {}", catalog.ecosystem(), catalog.version());
    for text in texts {
        let found = catalog.find(text.as_bytes());
        told += &format!("\n{found:?} {:?}", catalog.by_ticker_id(A, &info(text).ticker_id));
        if let Lookup::Known(symbol) = found {
            told += &format!(
                " {:?} {:?} {:?} {:?} {:?}",
                catalog.sources_of(symbol),
                catalog.listing(A, symbol),
                catalog.ecosystem_entry(symbol),
                catalog.created_at(symbol),
                catalog.updated_at(symbol),
            );
        }
    }
    told
}

/// Takes over what is pending, a slice at a time: what is served changes in one of them.
#[track_caller]
fn check_one_switch(
    catalog: &mut Catalog,
    texts: &[String],
    mut slice: impl FnMut(&mut Catalog) -> bool,
) {
    let (mut seen, mut slices) = (vec![served(catalog, texts)], 0);
    let mut is_over = false;
    while !is_over {
        is_over = slice(catalog);
        slices += 1;
        let now = served(catalog, texts);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    assert_eq!(seen.len(), 2, "it was served in {} steps", seen.len() - 1);
    assert!(slices > 6, "{slices} slices");
}

#[test]
fn a_long_list_is_taken_over_in_slices_and_served_all_at_once() {
    let names = |range: std::ops::Range<usize>| -> Vec<String> {
        range.map(|at| format!("M{}/Q{}", at, at % 7)).collect()
    };
    let all = names(0..2000);
    let mut catalog = catalog(&[source("a", &["M3/Q3"], &["*"]), source("b", &[], &[])]);
    let read = |catalog: &mut Catalog, source, range| {
        catalog.begin_list(source);
        for text in names(range) {
            catalog.list(source, info(&text));
        }
        catalog.end_list(source).expect("a usable list");
    };
    let remembered = (names(0..900).iter())
        .map(|text| catalog.number_of(text).expect("a name"))
        .collect::<Vec<_>>();
    check_one_switch(&mut catalog, &all, |catalog| catalog.remember(A, || remembered.clone(), T1));
    // First, much as remembered; then most are others, and many have left.
    for (range, now) in [(0..1000, T1), (600..2000, T2), (0..900, T3)] {
        read(&mut catalog, A, range);
        check_one_switch(&mut catalog, &all, |catalog| catalog.refresh_list(A, now).is_some());
    }
    assert_eq!(catalog.known().len(), 900);
}

#[test]
fn what_is_to_be_taken_over_waits_for_another_one_that_has_begun() {
    let mut catalog = catalog(&[source("a", &[], &[]), source("b", &[], &[])]);
    let luna = catalog.number_of("LUNA/USDT").expect("a name");
    for source in [A, B] {
        catalog.begin_list(source);
        catalog.list(source, info("BTC/USDT"));
        assert_eq!(catalog.end_list(source), Ok(()));
    }
    assert!(!catalog.remember(A, || vec![luna], T1));
    for _ in 0..20 {
        assert_eq!(catalog.refresh_list(A, T1), None);
        assert_eq!(catalog.refresh_list(B, T1), None);
    }
    assert_eq!(known(&catalog), "");
    while !catalog.remember(A, Vec::new, T1) {}
    assert_eq!(known(&catalog), "LUNA/USDT");
    while catalog.refresh_list(A, T1).is_none() {
        assert_eq!(catalog.refresh_list(B, T1), None);
    }
    assert_eq!(known(&catalog), "BTC/USDT");
    while catalog.refresh_list(B, T1).is_none() {}
    let btc = id(&catalog, "BTC/USDT");
    assert_eq!(catalog.sources_of(btc), [A, B]);
}
