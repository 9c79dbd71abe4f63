//! Enums whose variants have names, for metrics, logs and messages.
//!
//! Such a set is closed. For the values that a JSON file may contain, use `names!` of `config::members`
//! instead.

/// Defines such an enum. Each row is a documented variant and its name.
macro_rules! named {
    ($(#[$about:meta])+ $vis:vis enum $type:ident {
        $( $(#[$what:meta])+ $variant:ident $name:literal )+
    }) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $type { $( $(#[$what])+ $variant, )+ }

        impl $type {
            /// The names of the variants, in their order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name of the variant.
            pub fn name(self) -> &'static str {
                $type::NAMES[self as usize]
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    named! {
        /// Two sides.
        enum Side {
            /// The one.
            Left "left"
            /// The other.
            Right "right"
        }
    }

    #[test]
    fn each_variant_has_the_name_behind_it() {
        assert_eq!([Side::Left, Side::Right].map(Side::name), *Side::NAMES);
    }
}
