//! The documentation: one page for each topic.
//!
//! The pages are the Markdown files beside this one, so that they read the same here and in the repository.
//! Begin with the README. [`crate`] lists the modules.

/// Includes pages. Each page begins with the targets of its links in this documentation. If a link is defined
/// twice, the first definition is used; the definitions at the end of the file are for the repository. A
/// private module has no page here, so a link to it leads to its source.
macro_rules! pages {
    ($($name:ident $file:literal)+) => {
        $(
            #[doc = "[the HTTP interface]: crate::docs::http_api#charts"]
            #[doc = "[Charts and history]: crate::docs::charts_and_history"]
            #[doc = "[Operations]: crate::docs::operations"]
            #[doc = "[The demo exchange]: crate::docs::configuration#the-demo-exchange"]
            #[doc = "[Testing your program]: crate::docs::testing_your_program"]
            #[doc = "[Your data]: crate::docs::data"]
            #[doc = "[Backup]: crate::docs::backup#these-commands-as-root"]
            #[doc = "[crate's page]: crate"]
            #[doc = "[`core/api`]: crate::core::api"]
            #[doc = "[`core/api/stream.rs`]: crate::core::api::stream"]
            #[doc = "[`core/api/metrics/table.rs`]: ../../../src/marketd/core/api/metrics/table.rs.html"]
            #[doc = "[`config/limits.rs`]: ../../../src/marketd/config/limits.rs.html"]
            #[doc = "[`config/schema.rs`]: ../../../src/marketd/config/schema.rs.html"]
            #[doc = "[`config/flags.rs`]: ../../../src/marketd/config/flags.rs.html"]
            #[doc = "[`exchange`]: crate::exchange"]
            #[doc = ""]
            #[doc = include_str!($file)]
            pub mod $name {}
        )+
    };
}

pages! {
    http_api "http-api.md"
    configuration "configuration.md"
    dialects "dialects.md"
    charts_and_history "charts-and-history.md"
    operations "operations.md"
    backup "backup.md"
    data "data.md"
    cluster "cluster.md"
    performance "performance.md"
    testing "testing.md"
    testing_your_program "testing-your-program.md"
    architecture "architecture.md"
    changelog "changelog.md"
}
